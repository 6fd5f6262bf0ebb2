import { Schema } from "effect"

/** A database operation failed after its retries. `retryable`: the same call may succeed later (locked, full, away). */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  operation: Schema.String,
  reason: Schema.String,
  retryable: Schema.Boolean,
}) {
  override get message() {
    return `storage: ${this.operation}: ${this.reason}`
  }
}

/** The writer does not own the network, or no longer: another claim has a later epoch. Nothing was written. */
export class NotOwner extends Schema.TaggedError<NotOwner>()("NotOwner", {
  network: Schema.String,
  /** Who runs it, in words, where that is known. */
  holder: Schema.optionalKey(Schema.String),
}) {
  override get message() {
    return `network ${this.network} is run by ${this.holder ?? "another process"}, not by this one; ask that one`
  }
}

/** Another process runs the network: its lease has not run out. */
export class Held extends Schema.TaggedError<Held>()("Held", {
  network: Schema.String,
  /** As its claim named it. */
  holder: Schema.String,
}) {
  override get message() {
    return `network ${this.network} is run by ${this.holder}`
  }
}

/** The resources were changed by someone else since they were read; nothing was written. */
export class StaleResources extends Schema.TaggedError<StaleResources>()("StaleResources", {}) {
  override get message() {
    return "the resources were changed by another process at the same moment; try again"
  }
}
