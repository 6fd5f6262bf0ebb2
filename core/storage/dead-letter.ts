import type { Cursor } from "../model/cursor.ts"

/** A delivery that used up its retries, as it is listed. Times are in ms since 1970. */
export interface DeadLetterRow {
  readonly seq: number
  /** Order of dying, over all networks. */
  readonly died: number
  readonly network: string
  readonly sink: string
  readonly monitor: string
  readonly matchId: string
  readonly life: number
  readonly cursor: Cursor
  readonly kind: "match" | "retracted"
  readonly attempts: number
  readonly reason: string
  readonly createdAt: number
  readonly payload: string | null
  /** Whether the match was taken back since. */
  readonly ended: boolean
}

/** Why a dead letter is not sent again. */
export type NoReplay = "RETRACTED" | "NO_REPLAY_RETRACTED" | "NO_REPLAY_PAYLOAD"

/** How many dead letters a sink has of a monitor. */
export interface DeadLetterCount {
  readonly sink: string
  readonly monitor: string
  readonly letters: number
}

/** The dead letters of a network, or those of a sink or monitor of it. */
export interface DeadLetterFilter {
  readonly network: string
  readonly sink?: string
  readonly monitor?: string
}

/** Dead letters by what they are, too. */
export interface LetterFilter extends DeadLetterFilter {
  readonly kind?: DeadLetterRow["kind"]
  /** Whether their matches were taken back. */
  readonly ended?: boolean
}
