import { type Effect, Schema } from "effect"
import type { MatchState } from "../storage/events.ts"

/** The database that holds the matches did not answer. */
export class MatchStateUnavailable extends Schema.TaggedError<MatchStateUnavailable>()("MatchStateUnavailable", {
  reason: Schema.String,
}) {
  override get message() {
    return `the state of a match cannot be read: ${this.reason}`
  }
}

/** The present state of matches. Events carry no order: an action makes its effect agree with this. */
export interface MatchStates {
  /** Null when the match is not kept any more, or was never there. */
  readonly state: (matchId: string) => Effect.Effect<MatchState | null, MatchStateUnavailable>
}
