import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** A resource was refused; nothing was changed. Holds every problem. `UNSUPPORTED`: valid, but not built yet. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  code: Schema.Literals(["INVALID", "UNSUPPORTED"]),
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

export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { resource: Schema.String }) {
  override get message() {
    return `${this.resource} does not exist`
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
