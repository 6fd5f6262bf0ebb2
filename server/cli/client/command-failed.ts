import { Schema } from "effect"

/** A command did not do what was asked, or not all of it. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}
