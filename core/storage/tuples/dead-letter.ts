import type { DeadLetterFilter, DeadLetterRow, LetterFilter, NoReplay } from "../dead-letter.ts"

/** A dead letter with its match, in the order of the columns that both databases select. */
export type DeadLetterTuple = readonly [
  seq: number,
  died: number,
  network: string,
  sink: string,
  monitor: string,
  matchId: string,
  life: number,
  primary: number,
  secondary: number,
  kind: DeadLetterRow["kind"],
  attempts: number,
  reason: string | null,
  createdAt: number,
  payload: string,
  ended: number,
]

export const toDeadLetterRow = (tuple: DeadLetterTuple): DeadLetterRow => {
  const [seq, died, network, sink, monitor, matchId, life, primary, secondary, kind] = tuple
  const [, , , , , , , , , , attempts, reason, createdAt, payload, ended] = tuple
  return {
    seq,
    died,
    network,
    sink,
    monitor,
    matchId,
    life,
    cursor: { primary, secondary },
    kind,
    attempts,
    reason: reason ?? "",
    createdAt,
    payload: kind === "match" ? payload : null,
    ended: ended === 1,
  }
}

/** What a dead letter is: of a match that stands, of one that was taken back, or a retraction. */
export type LetterKind = "match" | "ended" | "retracted"

/** Every kind. */
export const letterKinds: ReadonlyArray<LetterKind> = ["match", "ended", "retracted"]

/** Which parts of the filter the statement has. */
export interface LetterParts {
  readonly sink: boolean
  readonly monitor: boolean
  readonly kinds: ReadonlyArray<LetterKind>
}

export const filterParts = ({ sink, monitor, kind, ended }: LetterFilter): LetterParts => ({
  sink: sink !== undefined,
  monitor: monitor !== undefined,
  kinds: letterKinds.filter(
    (of) =>
      (kind === undefined || (kind === "retracted") === (of === "retracted")) &&
      (ended === undefined || ended === (of !== "match")),
  ),
})

/** The parameters that the statement's filter takes. */
export const filterValues = ({ network, sink, monitor }: DeadLetterFilter): ReadonlyArray<string> =>
  [network, sink, monitor].filter((value) => value !== undefined)

/** Why a replay of this row is refused, or null. */
export const noReplay = (row: Pick<DeadLetterRow, "kind" | "ended" | "payload">): NoReplay | null => {
  if (row.kind === "retracted") return "NO_REPLAY_RETRACTED"
  if (row.ended) return "RETRACTED"
  return row.payload === null ? "NO_REPLAY_PAYLOAD" : null
}
