import { Effect } from "effect"
import type { StorageError } from "../../storage/error.ts"
import type { DeadLetterFilter, DeadLetterRow, LetterFilter } from "../../storage/dead-letter.ts"
import type { Storage } from "../../storage/storage.ts"
import { noReplayReasons } from "../error.ts"
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

/** A letter that was chosen. */
export type Chosen = Pick<DeadLetterRow, "seq" | "sink" | "died">

/** What a bulk replay sends, and what it passes over. */
export interface Choice {
  readonly letters: ReadonlyArray<Chosen>
  /** The place of the last of them, in the order of dying; null when none that can be sent is left behind it. */
  readonly end: number | null
  /** What is passed over on the way, and why. */
  readonly passed: ReadonlyArray<{ readonly filter: LetterFilter; readonly why: string }>
}

/** Letters of one page. */
const PAGE = 256

/** Letters of one step of a count, which keeps it to a few ms. */
const STEP = 10_000

/** The letters of one sink that can be sent, in the order of dying. */
class Lane {
  readonly #read: (after: number) => Effect.Effect<ReadonlyArray<DeadLetterRow>, StorageError>
  #page: ReadonlyArray<DeadLetterRow> = []
  #next = 0
  #after: number
  #isLast = false

  constructor(read: (after: number) => Effect.Effect<ReadonlyArray<DeadLetterRow>, StorageError>, after: number) {
    this.#read = read
    this.#after = after
  }

  /** The next letter, once it is sought. */
  get head(): DeadLetterRow | undefined {
    return this.#page[this.#next]
  }

  take(): void {
    this.#next++
  }

  /** Reads the next page if it has to; answers whether there is a head then. */
  readonly seek: Effect.Effect<boolean, StorageError> = Effect.suspend(() => {
    if (this.head !== undefined) return Effect.succeed(true)
    if (this.#isLast) return Effect.succeed(false)
    return Effect.map(this.#read(this.#after), (page) => {
      this.#page = page
      this.#next = 0
      this.#isLast = page.length < PAGE
      this.#after = page.at(-1)?.died ?? this.#after
      return page.length > 0
    })
  })
}

/** The oldest letters that can be sent, as many as are asked for. */
export const chooseLetters = Effect.fnUntraced(function* (
  storage: Storage["Service"],
  { filter, after, first, refusalOf }: BulkReplay,
): Effect.fn.Return<Choice, StorageError> {
  const counts = yield* storage.deadLetterCounts(filter.network)
  const sinks = new Set(counts.map(({ sink }) => sink).filter((sink) => [undefined, sink].includes(filter.sink)))
  let lanes: Array<Lane> = []
  const passed: Array<Choice["passed"][number]> = []
  for (const sink of sinks) {
    const ofSink = { ...filter, sink }
    const refusal = refusalOf(sink)
    if (refusal !== null) {
      passed.push({ filter: ofSink, why: refusal })
      continue
    }
    passed.push(
      { filter: { ...ofSink, kind: "match", ended: true }, why: unsendable(noReplayReasons.RETRACTED) },
      { filter: { ...ofSink, kind: "retracted" }, why: unsendable(noReplayReasons.NO_REPLAY_RETRACTED) },
    )
    const sendable: LetterFilter = { ...ofSink, kind: "match", ended: false }
    lanes.push(new Lane((behind) => storage.deadLetters(sendable, { after: behind, limit: PAGE }), after))
  }
  const letters: Array<Chosen> = []
  while (letters.length < first) {
    lanes = yield* Effect.filter(lanes, (lane) => lane.seek)
    if (lanes.length === 0) return { letters, end: null, passed }
    const oldest = lanes.reduce((a, b) => (b.head!.died < a.head!.died ? b : a))
    const { seq, sink, died } = oldest.head!
    letters.push({ seq, sink, died })
    oldest.take()
  }
  return { letters, end: letters.at(-1)!.died, passed }
})

const unsendable = (reason: string): string => `a letter cannot be replayed: ${reason}`

/** Counts what a bulk replay passed over between two places, so that calls one behind another count each letter once. */
export const countPassed = Effect.fnUntraced(function* (
  storage: Storage["Service"],
  passed: Choice["passed"],
  after: number,
  end: number | null,
  skipped: Skipped,
): Effect.fn.Return<void, StorageError> {
  const upTo = end ?? Number.MAX_SAFE_INTEGER
  for (const { filter, why } of passed) {
    for (let place = after, isLast = false; !isLast;) {
      const { letters, last } = yield* storage.deadLettersBetween(filter, { after: place, upTo, limit: STEP })
      if (letters > 0) skipped.add(why, letters)
      isLast = letters < STEP
      place = last
      yield* Effect.yieldNow
    }
  }
})
