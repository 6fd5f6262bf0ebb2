import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** There is no such delivery. */
export class DeliveryNotFound extends Schema.TaggedError<DeliveryNotFound>()("DeliveryNotFound", {
  id: Schema.String,
}) {
  override get message() {
    return `there is no delivery ${this.id} to an action; it may have been removed after its retention`
  }
}

/** The program has no such action and no deliveries to one are kept, or it has no such store. */
export class ActionNotFound extends Schema.TaggedError<ActionNotFound>()("ActionNotFound", {
  what: Schema.Literals(["action", "event store"]),
  name: Schema.String,
  known: Schema.Array(Schema.String),
}) {
  override get message() {
    const there = this.known.length === 0 ? "there is none" : `there are ${this.known.map((n) => `"${n}"`).join(", ")}`
    return `${this.what} "${this.name}" does not exist; ${there}`
  }
}

/** What is to be gone on behind is no delivery of what is listed. */
export class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", { after: Schema.String }) {
  override get message() {
    return `"${this.after}" is no cursor of these deliveries: pass the cursor of one of them, or null to begin with the oldest`
  }
}

/** A delivery is not in a state in which this can be done with it. */
export class DeliveryRefused extends Schema.TaggedError<DeliveryRefused>()("DeliveryRefused", {
  id: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `delivery ${this.id}: ${this.reason}`
  }
}

/** What an operator says that a call answered is not what its operation answers. Nothing was changed. */
export class ResultInvalid extends Schema.TaggedError<ResultInvalid>()("ResultInvalid", {
  id: Schema.String,
  operation: Schema.String,
  /** Rules and fields, never a value. */
  problems: Schema.Array(Problem),
}) {
  override get message() {
    const all = this.problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")
    return `delivery ${this.id}: the result does not fit the output schema of ${this.operation}: ${all}`
  }
}

/** An event cannot be emitted in this way. */
export class EmitRefused extends Schema.TaggedError<EmitRefused>()("EmitRefused", {
  type: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `an event "${this.type}" was not emitted: ${this.reason}`
  }
}
