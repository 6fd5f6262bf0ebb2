import { Effect } from "effect"
import { Probation } from "../../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { DeadLetterFilter, Storage } from "../../storage/storage.ts"
import { noReplay } from "../../storage/tuples/dead-letter.ts"
import type { Letter, Replays } from "./replays.ts"

/** What became of the letters of a bulk replay. */
export interface ReplayCounts {
  readonly delivered: number
  /** Kept, with the new reason. */
  readonly failed: number
  /** Left as they were. */
  readonly skipped: number
}

/** Letters of one page when they are chosen. */
const PAGE = 256

/** The oldest letters that can be sent, and how many lie between them that cannot. */
const choose = Effect.fnUntraced(function* (storage: Storage["Service"], filter: DeadLetterFilter, first: number) {
  const letters: Array<Letter> = []
  let passed = 0
  let after = 0
  while (letters.length < first) {
    const page = yield* storage.deadLetters(filter, { after, limit: PAGE })
    for (const row of page) {
      if (letters.length === first) break
      if (noReplay(row) === null) letters.push({ seq: row.seq, sink: row.sink })
      else passed++
    }
    if (page.length < PAGE) break
    after = page.at(-1)!.died
  }
  return { letters, passed }
})

/**
 * Replays dead letters, the oldest first and each in its turn; sinks do not wait for each other. A sink that is down costs
 * one delivery's retries and three more attempts: its other letters are left as they are, and so is what cannot be sent.
 */
export const replayAll = Effect.fnUntraced(function* (
  replays: Replays,
  storage: Storage["Service"],
  filter: DeadLetterFilter,
  /** The most letters that are sent. */
  first: number,
): Effect.fn.Return<ReplayCounts, StorageError | NotOwner> {
  const { letters, passed } = yield* choose(storage, filter, first)
  let delivered = 0
  let failed = 0
  const toSink = (ofSink: ReadonlyArray<Letter>) => {
    const policy = new Probation()
    return Effect.forEach(
      ofSink,
      (letter) =>
        Effect.map(replays.send(letter, policy), ({ _tag }) => {
          if (_tag === "Delivered") delivered++
          if (_tag === "Dead") failed++
        }),
      { discard: true },
    )
  }
  yield* Effect.forEach(Map.groupBy(letters, ({ sink }) => sink).values(), toSink, {
    concurrency: "unbounded",
    discard: true,
  })
  const skipped = letters.length + passed - delivered - failed
  yield* Effect.logInfo(`replayed dead letters: ${delivered} delivered, ${failed} failed, ${skipped} left as they were`)
  return { delivered, failed, skipped }
})
