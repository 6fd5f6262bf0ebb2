import { Effect } from "effect"
import { Probation } from "../../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { Storage } from "../../storage/storage.ts"
import { type BulkReplay, chooseLetters } from "./choose-letters.ts"
import type { Letter, Replays } from "./replays.ts"
import { Skipped } from "./skipped.ts"

/** What became of the letters of a bulk replay. */
export interface BulkOutcome {
  readonly delivered: number
  /** Kept, with the new reason. */
  readonly failed: number
  /** Left as they were. */
  readonly skipped: number
  /** Why letters were left, and what to do: each reason once. */
  readonly whySkipped: ReadonlyArray<string>
  /** The place of the last letter that was chosen, in the order of dying; null when none is left behind it. */
  readonly end: number | null
}

/**
 * Replays dead letters, the oldest first and each in its turn; sinks do not wait for each other. A sink that is down costs
 * one delivery's retries and three more attempts: its other letters are left as they are, and so is what cannot be sent.
 */
export const replayAll = Effect.fnUntraced(function* (
  replays: Replays,
  storage: Storage["Service"],
  what: BulkReplay,
): Effect.fn.Return<BulkOutcome, StorageError | NotOwner> {
  const skipped = new Skipped()
  const { letters, end } = yield* chooseLetters(storage, what, skipped)
  let delivered = 0
  let failed = 0
  const toSink = (ofSink: ReadonlyArray<Letter>) => {
    const policy = new Probation()
    return Effect.forEach(
      ofSink,
      (letter) =>
        Effect.map(replays.send(letter, policy), (replayed) => {
          if (replayed._tag === "Delivered") delivered++
          else if (replayed._tag === "Dead") failed++
          else if (replayed._tag === "Left") skipped.add(replayed.reason)
          else skipped.refused(replayed.why)
        }),
      { discard: true },
    )
  }
  yield* Effect.forEach(Map.groupBy(letters, ({ sink }) => sink).values(), toSink, {
    concurrency: "unbounded",
    discard: true,
  })
  yield* Effect.logInfo(
    `replayed dead letters: ${delivered} delivered, ${failed} failed, ${skipped.count} left as they were`,
  )
  return { delivered, failed, skipped: skipped.count, whySkipped: [...skipped.reasons], end }
})
