import { Clock, Effect, Latch } from "effect"
import { compareCursors, type Cursor } from "../model/cursor.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Owner, Storage } from "../storage/storage.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"
import type { ProgressTracker } from "./tracker.ts"

/** Follows the tracker's watermark with the stored checkpoint, coalescing what moves while it writes. */
export interface CheckpointWriter {
  /** Says that the watermark may have moved. */
  readonly wake: () => void
  /** Says that a checkpoint was stored in another transaction (with a quiet batch). */
  readonly stored: (cursor: Cursor) => Effect.Effect<void>
  /** Writes the watermark now, if it is ahead of what is stored. */
  readonly flush: Effect.Effect<void, StorageError | NotOwner>
  /** Writes until interrupted. */
  readonly run: Effect.Effect<void, StorageError | NotOwner>
}

/** How long advances are collected before they are written: one write serves many deliveries. */
const COALESCE = "20 millis"

export const makeCheckpointWriter = Effect.fnUntraced(function* (options: {
  readonly storage: Storage["Service"]
  readonly owner: Owner
  readonly status: PipelineStatus
  readonly tracker: ProgressTracker
  readonly initial: Cursor | null
  /** Told after each stored checkpoint. */
  readonly onStored: (cursor: Cursor, at: number) => Effect.Effect<void>
}): Effect.fn.Return<CheckpointWriter> {
  const { storage, owner, status, tracker } = options
  const latch = yield* Latch.make(false)
  let written = options.initial
  const isAhead = (cursor: Cursor | null): cursor is Cursor =>
    cursor !== null && (written === null || compareCursors(cursor, written) > 0)
  const stored = Effect.fnUntraced(function* (cursor: Cursor) {
    if (!isAhead(cursor)) return
    written = cursor
    yield* options.onStored(cursor, yield* Clock.currentTimeMillis)
  })
  const flush = Effect.suspend(() => {
    const cursor = tracker.watermark
    if (!isAhead(cursor)) return Effect.void
    return storage.checkpoint(owner, cursor).pipe(untilStored(status), Effect.andThen(stored(cursor)))
  })
  return {
    wake: () => {
      latch.openUnsafe()
    },
    stored,
    flush,
    run: latch.await.pipe(
      Effect.andThen(Effect.sync(() => latch.closeUnsafe())),
      Effect.andThen(flush),
      Effect.andThen(Effect.sleep(COALESCE)),
      Effect.forever,
    ),
  }
})
