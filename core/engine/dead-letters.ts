import { Context, Effect, Fiber, Layer } from "effect"
import { byDefinition } from "../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import { type DeadLetterFilter, type DeadLetterRow, type NoReplay, Storage } from "../storage/storage.ts"
import { noReplay } from "../storage/tuples/dead-letter.ts"
import { deadLetterCursor, deadLetterId, parseDeadLetterCursor, parseDeadLetterId } from "./dead-letter-id.ts"
import { Engine } from "./engine.ts"
import { Conflict, InvalidPosition, NotFound, NotReplayable } from "./error.ts"
import { replayAll, type ReplayCounts } from "./replays/replay-all.ts"
import { sinkRefusal } from "./replays/sink-refusal.ts"

export type { NoReplay, ReplayCounts }

export interface DeadLetter extends DeadLetterRow {
  /** Opaque and stable. */
  readonly id: string
  readonly replayable: boolean
  /** The error code that a replay would answer. */
  readonly whyNot: NoReplay | null
}

export interface DeadLetterPage {
  readonly items: ReadonlyArray<{ readonly cursor: string; readonly node: DeadLetter }>
  readonly hasNextPage: boolean
  /** The cursor of the last item, or null on an empty page. */
  readonly endCursor: string | null
  /** How many there are on all pages. */
  readonly totalCount: number
}

export interface DeadLettersRequest extends DeadLetterFilter {
  /** At least 1; more than 1000 are read as 1000. */
  readonly first: number
  /** The cursor of an item, or null for the oldest. */
  readonly after: string | null
}

/** How a replay ended. */
export interface DeadLetterReplay {
  readonly delivered: boolean
  /** As it is kept when the replay failed. */
  readonly deadLetter: DeadLetter | null
}

type Change<A> = Effect.Effect<A, NotFound | Conflict | NotOwner | StorageError>

/** Deliveries that used up their retries, kept in the order of dying until they are replayed or discarded. */
export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    readonly list: (request: DeadLettersRequest) => Effect.Effect<DeadLetterPage, InvalidPosition | StorageError>
    /**
     * Sends a letter again, as its sink is configured now and with all its retries; it is gone when the sink takes it.
     * Replays of one network and sink go one after another, beside its deliveries; `Conflict` while the sink cannot take it.
     */
    readonly replay: (
      id: string,
    ) => Effect.Effect<DeadLetterReplay, NotReplayable | NotFound | Conflict | NotOwner | StorageError>
    /**
     * Replays the oldest letters of a network, as many as `first` (at least 1; more than 10,000 are read as 10,000). Letters
     * that cannot be sent, and those of a sink that turns out to be down, are left as they are.
     */
    readonly replayAll: (filter: DeadLetterFilter, first: number) => Change<ReplayCounts>
    /** Gives a letter up unsent. Its match is still taken back if the chain takes it back. */
    readonly discard: (id: string) => Change<void>
    /** Gives up all letters that the filter shows; how many. */
    readonly discardAll: (filter: DeadLetterFilter) => Change<number>
    /**
     * Owes a sink the retractions again that died there, in the order of dying; how many. Those of a match that stands again
     * are left.
     */
    readonly offerRetractions: (network: string, sink: string) => Change<number>
  }
>()("blockwatcher/DeadLetters") {
  static readonly layer: Layer.Layer<DeadLetters, never, Engine | Storage> = Layer.effect(
    DeadLetters,
    Effect.suspend(() => makeDeadLetters()),
  )
}

const MAX_PAGE = 1000

const MAX_REPLAYS = 10_000

/** Rows of one transaction: keeps it to a few ms. */
const STEP = 256

const makeDeadLetters = Effect.fnUntraced(function* () {
  const storage = yield* Storage
  const { catalog, sinks, supervisor } = yield* Engine
  const scope = yield* Effect.scope

  const tenureOf = Effect.fnUntraced(function* (network: string) {
    if (!catalog.networks.has(network)) return yield* new NotFound({ resource: `network "${network}"` })
    return yield* (yield* supervisor(network)).tenure
  })

  const canTake = (sink: string): Effect.Effect<void, Conflict> => {
    const reason = sinkRefusal(sink, sinks.handle(sink))
    return reason === null ? Effect.void : Effect.fail(new Conflict({ reason }))
  }

  return DeadLetters.of({
    list: Effect.fn("DeadLetters.list")(function* (request: DeadLettersRequest) {
      const { first, after, ...filter } = request
      const died = after === null ? 0 : parseDeadLetterCursor(after)
      if (died === null)
        return yield* new InvalidPosition({
          reason: "this is no cursor of the dead letters: pass the cursor of an item, or null to begin with the oldest",
        })
      const limit = Math.max(1, Math.min(first, MAX_PAGE))
      const rows = yield* storage.deadLetters(filter, { after: died, limit: limit + 1 })
      const totalCount = yield* storage.deadLetterCount(filter)
      const items = rows.slice(0, limit).map((row) => ({ cursor: deadLetterCursor(row.died), node: deadLetterOf(row) }))
      return { items, hasNextPage: rows.length > limit, endCursor: items.at(-1)?.cursor ?? null, totalCount }
    }),

    replay: Effect.fn("DeadLetters.replay")(function* (id) {
      const { network, seq } = yield* keyOf(id)
      const { replays } = yield* tenureOf(network)
      const letter = yield* storage.deadLetter(network, seq)
      if (letter === null) return yield* replays.isUnderWay(seq) ? underWay(id) : missing(id)
      const code = noReplay(letter)
      if (code !== null) return yield* new NotReplayable({ id, code })
      yield* canTake(letter.sink)
      const replayed = yield* replays.send(letter, byDefinition)
      switch (replayed._tag) {
        case "Delivered":
          return { delivered: true, deadLetter: null }
        case "Dead": {
          const kept = yield* storage.deadLetter(network, seq)
          return { delivered: false, deadLetter: kept === null ? null : deadLetterOf(kept) }
        }
        case "Left":
          return yield* new Conflict({ reason: replayed.reason })
        case "Refused":
          return yield* replayed.why === "NOT_FOUND" ? missing(id) : new NotReplayable({ id, code: replayed.why })
      }
    }),

    replayAll: Effect.fn("DeadLetters.replayAll")(function* (filter, first) {
      const { replays } = yield* tenureOf(filter.network)
      if (filter.sink !== undefined) yield* canTake(filter.sink)
      const most = Math.max(1, Math.min(first, MAX_REPLAYS))
      // Whoever asked for it may be gone long before it ends.
      return yield* Fiber.join(yield* Effect.forkIn(replayAll(replays, storage, filter, most), scope))
    }),

    discard: Effect.fn("DeadLetters.discard")(function* (id) {
      const { network, seq } = yield* keyOf(id)
      const { owner, replays } = yield* tenureOf(network)
      if (!(yield* storage.discard(owner, seq))) return yield* replays.isUnderWay(seq) ? underWay(id) : missing(id)
      yield* Effect.logInfo("a dead letter was discarded on request").pipe(Effect.annotateLogs({ network }))
    }),

    discardAll: Effect.fn("DeadLetters.discardAll")(function* (filter) {
      const { network, ...rest } = filter
      const { owner } = yield* tenureOf(network)
      // What dies meanwhile, nobody has seen yet.
      const total = yield* storage.deadLetterCount(filter)
      let discarded = 0
      while (discarded < total) {
        const step = yield* storage.discardAll(owner, rest, Math.min(STEP, total - discarded))
        if (step === 0) break
        discarded += step
      }
      yield* Effect.logInfo(`${discarded} dead letters were discarded on request`).pipe(
        Effect.annotateLogs({ ...filter }),
      )
      return discarded
    }),

    offerRetractions: Effect.fn("DeadLetters.offerRetractions")(function* (network, sink) {
      const { owner, offer } = yield* tenureOf(network)
      const handle = sinks.handle(sink)
      // One that is FAILED takes them when it is put right, as it does what else is owed to it.
      if (handle.isMissing || handle.paused !== null) yield* canTake(sink)
      // A receiver that refuses them at once lets them die again while others are still to be offered.
      const seen = new Set<number>()
      while (true) {
        const rows = yield* offer(storage.offerRetractions(owner, sink, STEP))
        const before = seen.size
        for (const { seq } of rows) seen.add(seq)
        if (rows.length < STEP || seen.size - before < rows.length) break
      }
      yield* Effect.logInfo(`${seen.size} retractions are owed again on request`).pipe(
        Effect.annotateLogs({ network, sink }),
      )
      return seen.size
    }),
  })
})

const missing = (id: string): NotFound => new NotFound({ resource: `dead letter "${id}"` })

const keyOf = (id: string) => {
  const key = parseDeadLetterId(id)
  return key === null ? Effect.fail(missing(id)) : Effect.succeed(key)
}

const underWay = (id: string): Conflict =>
  new Conflict({ reason: `dead letter "${id}" is being replayed; look again when that is over` })

const deadLetterOf = (row: DeadLetterRow): DeadLetter => {
  const whyNot = noReplay(row)
  return { ...row, id: deadLetterId(row), replayable: whyNot === null, whyNot }
}
