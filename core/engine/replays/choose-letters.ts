import { Effect } from "effect"
import type { DeadLetterFilter, DeadLetterRow, Storage } from "../../storage/storage.ts"
import { noReplay } from "../../storage/tuples/dead-letter.ts"
import type { Letter } from "./replays.ts"
import type { Skipped } from "./skipped.ts"

/** What of a network's letters is replayed. */
export interface BulkReplay {
  readonly filter: DeadLetterFilter
  /** Only letters behind this place in the order of dying. */
  readonly after: number
  /** The most letters that are sent. */
  readonly first: number
  /** Why a sink takes nothing at present; null if it does. */
  readonly refusalOf: (sink: string) => string | null
}

/** Letters of one page. */
const PAGE = 256

/** The letters of one sink that can be sent, in the order of dying. */
class Lane {
  readonly #read: (after: number) => ReturnType<Storage["Service"]["deadLetters"]>
  readonly #skipped: Skipped
  #page: ReadonlyArray<DeadLetterRow> = []
  #next = 0
  #after: number
  #isLast = false

  constructor(read: (after: number) => ReturnType<Storage["Service"]["deadLetters"]>, after: number, skipped: Skipped) {
    this.#read = read
    this.#after = after
    this.#skipped = skipped
  }

  /** The next letter that can be sent, once it is sought. */
  get head(): DeadLetterRow | undefined {
    return this.#page[this.#next]
  }

  take(): void {
    this.#next++
  }

  /** Passes over what cannot be sent; answers whether there is a head then. */
  readonly seek: Effect.Effect<boolean, Effect.Error<ReturnType<Storage["Service"]["deadLetters"]>>> = Effect.suspend(
    () => {
      for (; this.head !== undefined; this.#next++) {
        const why = noReplay(this.head)
        if (why === null) return Effect.succeed(true)
        this.#skipped.refused(why)
      }
      if (this.#isLast) return Effect.succeed(false)
      return Effect.flatMap(this.#read(this.#after), (page) => {
        this.#page = page
        this.#next = 0
        this.#isLast = page.length < PAGE
        this.#after = page.at(-1)?.died ?? this.#after
        return this.seek
      })
    },
  )
}

/**
 * The oldest letters that can be sent, as many as are asked for. Those of a sink that takes nothing at present are counted
 * as skipped, unread: there may be a million of them.
 */
export const chooseLetters = Effect.fnUntraced(function* (
  storage: Storage["Service"],
  { filter, after, first, refusalOf }: BulkReplay,
  skipped: Skipped,
) {
  const counts = (yield* storage.deadLetterCounts(filter.network)).filter(
    ({ sink, monitor }) =>
      (filter.sink === undefined || sink === filter.sink) &&
      (filter.monitor === undefined || monitor === filter.monitor),
  )
  let lanes: Array<Lane> = []
  for (const [sink, ofSink] of Map.groupBy(counts, (count) => count.sink)) {
    const why = refusalOf(sink)
    if (why === null) {
      const read = (behind: number) => storage.deadLetters({ ...filter, sink }, { after: behind, limit: PAGE })
      lanes.push(new Lane(read, after, skipped))
    } else {
      skipped.add(
        why,
        ofSink.reduce((sum, { letters }) => sum + letters, 0),
      )
    }
  }
  const letters: Array<Letter> = []
  let end = after
  while (letters.length < first) {
    lanes = yield* Effect.filter(lanes, (lane) => lane.seek)
    if (lanes.length === 0) return { letters, end: null }
    const oldest = lanes.reduce((a, b) => (b.head!.died < a.head!.died ? b : a))
    const { seq, sink, died } = oldest.head!
    letters.push({ seq, sink })
    end = died
    oldest.take()
  }
  return { letters, end }
})
