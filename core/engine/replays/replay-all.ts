import { Effect } from "effect"
import { Probation } from "../../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { Storage } from "../../storage/storage.ts"
import { type BulkReplay, type Chosen, chooseLetters, countPassed } from "./choose-letters.ts"
import type { Replays } from "./replays.ts"
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
  /**
   * Behind which place in the order of dying the next call goes on: that of the last letter that was chosen, or before the
   * first that was left as it was though it can be sent; null when there is none.
   */
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
  const { letters, end: chosen, passed } = yield* chooseLetters(storage, what)
  let firstLeft: number | null = null
  let delivered = 0
  let failed = 0
  const toSink = (ofSink: ReadonlyArray<Chosen>) => {
    const policy = new Probation()
    return Effect.forEach(
      ofSink,
      (letter) =>
        Effect.map(replays.send(letter, policy), (replayed) => {
          if (replayed._tag === "Delivered") delivered++
          else if (replayed._tag === "Dead") failed++
          else if (replayed._tag === "Left") {
            skipped.add(replayed.reason)
            firstLeft = Math.min(firstLeft ?? letter.died, letter.died)
          }
          // One that was taken back meanwhile is counted with those that were passed over.
          else if (replayed.why === "NOT_FOUND") skipped.gone()
        }),
      { discard: true },
    )
  }
  yield* Effect.forEach(Map.groupBy(letters, ({ sink }) => sink).values(), toSink, {
    concurrency: "unbounded",
    discard: true,
  })
  const end = firstLeft === null ? chosen : firstLeft - 1
  yield* countPassed(storage, passed, what.after, end, skipped)
  yield* Effect.logInfo(
    `replayed dead letters: ${delivered} delivered, ${failed} failed, ${skipped.count} left as they were`,
  )
  return { delivered, failed, skipped: skipped.count, whySkipped: [...skipped.reasons], end }
})
