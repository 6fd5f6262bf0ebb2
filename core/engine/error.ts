import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** A resource was refused; nothing was changed. Holds every problem. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  resource: Schema.String,
  problems: Schema.Array(Problem),
}) {
  override get message() {
    return `${this.resource} was refused: ${this.problems.map((p) => (p.path === "" ? p.message : `${p.path}: ${p.message}`)).join("; ")}`
  }
}

/** The change contradicts what is stored (another revision, something still needs it); nothing was changed. */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** What was named does not exist; `known` names what does, where that helps. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", {
  resource: Schema.String,
  known: Schema.optional(Schema.Array(Schema.String)),
}) {
  override get message() {
    const fact = `${this.resource} does not exist`
    if (this.known === undefined) return fact
    const shown = this.known.slice(0, MOST_NAMES).map((name) => `"${name}"`)
    const rest = this.known.length > MOST_NAMES ? ` and ${this.known.length - MOST_NAMES} more` : ""
    return this.known.length === 0 ? `${fact}; there is none` : `${fact}; there are ${shown.join(", ")}${rest}`
  }
}

/** The most names that an error lists. */
const MOST_NAMES = 20

/** Why a dead letter is not sent again, for a person. */
export const noReplayReasons = {
  RETRACTED: "its match was taken back since, so the receiver must not get it any more; discard the letter",
  NO_REPLAY_RETRACTED: "it is a retraction, which offerRetractions sends again, with all others that died at its sink",
  NO_REPLAY_PAYLOAD: "what it was to deliver was not kept; discard it, and rewind the network to match it again",
} as const

/** A dead letter cannot be sent again; it is kept. */
export class NotReplayable extends Schema.TaggedError<NotReplayable>()("NotReplayable", {
  id: Schema.String,
  code: Schema.Literals(["RETRACTED", "NO_REPLAY_RETRACTED", "NO_REPLAY_PAYLOAD"]),
}) {
  override get message() {
    return `dead letter "${this.id}" cannot be replayed: ${noReplayReasons[this.code]}`
  }
}

/** Items behind `after` were trimmed that the subscriber would have seen. `oldest` is the oldest usable token. */
export class StalePosition extends Schema.TaggedError<StalePosition>()("StalePosition", { oldest: Schema.String }) {
  override get message() {
    return "items behind this position are no longer kept; continue from extensions.oldest, or from null (now)"
  }
}

/** A position or page cursor that this feed did not make, or made for another `network` argument. */
export class InvalidPosition extends Schema.TaggedError<InvalidPosition>()("InvalidPosition", {
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }
}
