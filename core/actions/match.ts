import type { Schema } from "effect"
import type { Match as MatchBody } from "../model/sink-event.ts"
import { refuseInvalid } from "./definition-invalid.ts"

/** A subscription to the matches of a monitor, and to their retractions. */
export interface MatchOf<A = any> {
  readonly kind: "match"
  readonly monitor: string
  /** Counts the changes of `schema`, from 1: what an earlier one did not read is tried again by a later one. */
  readonly version: number
  readonly schema: Schema.Codec<A, any>
}

/** A match, or its retraction, as an action gets it. */
export interface MatchEvent<A> {
  readonly type: "match" | "retracted"
  /** The delivery id that other sinks know it by: `<match id>`, `<match id>-<life>`, with `-r` behind a retraction's. */
  readonly id: string
  readonly monitor: string
  readonly network: string
  /** The same in every life, and in the retractions: what an action's effect is to be filed under. */
  readonly matchId: string
  /** 1 at first, one more each time the chain takes it back and brings it again. */
  readonly life: number
  /** Names the emission of a gate that this match is a member of. */
  readonly emission: string | null
  /** The match's event; of a retraction, that of the match which is taken back. */
  readonly payload: A
}

/** A monitor's hit that passed its gate, as sinks get it. */
export type Match = MatchBody

/** The matches of monitors, as events. */
export const Match = {
  /**
   * Matches and retractions of a monitor. The monitor names `actions` among its sinks.
   *
   * @param schema of the match's event: `Schema.Struct({ args: Schema.Struct({ value: Schema.String }) })`
   */
  of: <A, I>(
    monitor: string,
    schema: Schema.Codec<A, I>,
    { version = 1 }: { readonly version?: number } = {},
  ): MatchOf<A> => {
    const problems = []
    if (monitor === "") problems.push({ path: "monitor", message: "must be the id of a monitor, not empty" })
    if (!Number.isSafeInteger(version) || version < 1) {
      problems.push({ path: "version", message: `must be an integer from 1 on, not ${version}` })
    }
    refuseInvalid(`the subscription to matches of "${monitor}"`, problems)
    return { kind: "match", monitor, version, schema }
  },
}
