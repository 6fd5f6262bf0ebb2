import { Schema } from "effect"

/** The local devnet could not be started; `reason` says what to do. */
export class DevnetError extends Schema.TaggedError<DevnetError>()("DevnetError", { reason: Schema.String }) {
  override get message() {
    return `devnet: ${this.reason}`
  }
}
