import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** What is emitted is not what its event type says. Nothing was emitted; names rules and fields, never a value. */
export class InvalidPayload extends Schema.TaggedError<InvalidPayload>()("InvalidPayload", {
  type: Schema.String,
  problems: Schema.Array(Problem),
}) {
  override get message() {
    const all = this.problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")
    return `the payload of event type "${this.type}" does not fit its schema: ${all}`
  }
}
