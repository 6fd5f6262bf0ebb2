import { Effect } from "effect"
import { Probation } from "../../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { DeadLetterFilter, Storage } from "../../storage/storage.ts"
import { noReplay } from "../../storage/tuples/dead-letter.ts"
import { noReplayReasons } from "../error.ts"
import type { Letter, Replayed, Replays } from "./replays.ts"

/** What became of the letters of a bulk replay. */
export interface ReplayCounts {
  readonly delivered: number
  /** Kept, with the new reason. */
  readonly failed: number
  /** Left as they were. */
  readonly skipped: number
  /** Why letters were left, and what to do: each reason once. */
  readonly whySkipped: ReadonlyArray<string>
}

/** Letters of one page when they are chosen. */
const PAGE = 256

const refusal = (why: (Replayed & { readonly _tag: "Refused" })["why"]): string =>
  why === "NOT_FOUND"
    ? "a letter is none any more: it was replayed or discarded meanwhile"
    : `a letter cannot be replayed: ${noReplayReasons[why]}`

/** Letters that are left as they were. */
class Skipped {
  count = 0
  readonly reasons = new Set<string>()

  add(reason: string): void {
    this.count++
    this.reasons.add(reason)
  }
}

/** The oldest letters that can be sent, and those between them that cannot. */
const choose = Effect.fnUntraced(function* (storage: Storage["Service"], filter: DeadLetterFilter, first: number) {
  const letters: Array<Letter> = []
  const skipped = new Skipped()
  let after = 0
  while (letters.length < first) {
    const page = yield* storage.deadLetters(filter, { after, limit: PAGE })
    for (const row of page) {
      if (letters.length === first) break
      const why = noReplay(row)
      if (why === null) letters.push({ seq: row.seq, sink: row.sink })
      else skipped.add(refusal(why))
    }
    if (page.length < PAGE) break
    after = page.at(-1)!.died
  }
  return { letters, skipped }
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
  const { letters, skipped } = yield* choose(storage, filter, first)
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
          else skipped.add(replayed._tag === "Left" ? replayed.reason : refusal(replayed.why))
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
  return { delivered, failed, skipped: skipped.count, whySkipped: [...skipped.reasons] }
})
