import { Context, Effect, Fiber, Layer } from "effect"
import { byDefinition } from "../pipeline/attempt-policy.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { DeadLetterFilter, DeadLetterRow, LetterFilter, NoReplay } from "../storage/dead-letter.ts"
import { Storage } from "../storage/storage.ts"
import { noReplay } from "../storage/tuples/dead-letter.ts"
import { deadLetterCursor, deadLetterId, parseDeadLetterCursor, parseDeadLetterId } from "./dead-letter-id.ts"
import { Engine } from "./engine.ts"
import { Conflict, InvalidPosition, NotFound, NotReplayable } from "./error.ts"
import { type BulkOutcome, replayAll } from "./replays/replay-all.ts"
import { sinkRefusal } from "./replays/sink-refusal.ts"

export type { LetterFilter, NoReplay }

export interface DeadLetter extends DeadLetterRow {
  /** Opaque and stable. */
  readonly id: string
  readonly replayable: boolean
  /** The error code that a replay would answer: `CONFLICT` while its sink takes nothing, or while it is being replayed. */
  readonly whyNot: NoReplay | "CONFLICT" | null
}

export interface DeadLetterPage {
  readonly items: ReadonlyArray<{ readonly cursor: string; readonly node: DeadLetter }>
  readonly hasNextPage: boolean
  /** The cursor of the last item, or null on an empty page. */
  readonly endCursor: string | null
  /** How many there are on all pages. */
  readonly totalCount: number
}

export interface DeadLettersRequest extends LetterFilter {
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

/** What became of the letters of a bulk replay. */
export interface ReplayCounts extends Omit<BulkOutcome, "end"> {
  /**
   * Behind the last letter that was chosen, or before the first of them that was left as it was; null when none that can be
   * sent is left behind it.
   */
  readonly endCursor: string | null
}

type Change<A> = Effect.Effect<A, NotFound | Conflict | NotOwner | StorageError>

/** Deliveries that used up their retries, kept in the order of dying until they are replayed or discarded. */
export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    /** `NotFound` for a sink or monitor that neither exists nor has letters; so do the other operations. */
    readonly list: (
      request: DeadLettersRequest,
    ) => Effect.Effect<DeadLetterPage, NotFound | InvalidPosition | StorageError>
    /**
     * Sends a letter again, as its sink is configured now and with all its retries; it is gone when the sink takes it.
     * Replays of one network and sink go one after another, beside its deliveries; `Conflict` while the sink cannot take it.
     */
    readonly replay: (
      id: string,
    ) => Effect.Effect<DeadLetterReplay, NotReplayable | NotFound | Conflict | NotOwner | StorageError>
    /**
     * Replays the oldest letters of a network behind the cursor `after`, as many as `first` (at least 1; more than 10,000 are
     * read as 10,000). Letters that cannot be sent at present do not count in `first`; they, and those of a sink that turns
     * out to be down, are left as they are.
     */
    readonly replayAll: (
      filter: DeadLetterFilter,
      first: number,
      after?: string | null,
    ) => Effect.Effect<ReplayCounts, NotFound | Conflict | InvalidPosition | NotOwner | StorageError>
    /** No letter is replayed any more, until the runtime is built anew: for a host that is about to stop it. */
    readonly endReplays: Effect.Effect<void>
    /** Gives a letter up unsent. Its match is still taken back if the chain takes it back. */
    readonly discard: (id: string) => Change<void>
    /** Gives up all letters that the filter shows; how many. */
    readonly discardAll: (filter: LetterFilter) => Change<number>
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

/** Rows of one page or transaction: keeps it to a few ms. */
const STEP = 256

const badCursor = new InvalidPosition({
  reason: "this is no cursor of the dead letters: pass the cursor of an item, or null to begin with the oldest",
})

const placeOf = (after: string | null) => {
  const died = after === null ? 0 : parseDeadLetterCursor(after)
  return died === null ? Effect.fail(badCursor) : Effect.succeed(died)
}

const makeDeadLetters = Effect.fnUntraced(function* () {
  const storage = yield* Storage
  const { catalog, sinks, supervisor, endReplays } = yield* Engine
  const scope = yield* Effect.scope

  const tenureOf = Effect.fnUntraced(function* (network: string) {
    yield* existing(network)
    return yield* (yield* supervisor(network)).tenure
  })

  const existing = (network: string): Effect.Effect<void, NotFound> =>
    catalog.networks.has(network)
      ? Effect.void
      : Effect.fail(new NotFound({ resource: `network "${network}"`, known: [...catalog.networks.keys()].toSorted() }))

  /** A name that neither a resource nor a letter has is a slip: it must not look as if there were no letters. */
  const checkNames = Effect.fnUntraced(function* ({ network, sink, monitor }: DeadLetterFilter) {
    const counts = yield* storage.deadLetterCounts(network)
    if (counts.length === 0) yield* existing(network)
    if (sink === undefined && monitor === undefined) return
    const knownSinks = new Set([...sinks.all().map(({ definition }) => definition.id), ...counts.map((c) => c.sink)])
    if (sink !== undefined && !knownSinks.has(sink)) {
      return yield* new NotFound({ resource: `sink "${sink}"`, known: [...knownSinks].toSorted() })
    }
    const knownMonitors = new Set([
      ...[...catalog.monitors.values()]
        .filter(({ stored }) => stored.definition.network === network)
        .map(({ stored }) => stored.definition.id),
      ...counts.map((c) => c.monitor),
    ])
    if (monitor !== undefined && !knownMonitors.has(monitor)) {
      const resource = `monitor "${monitor}" of network "${network}"`
      return yield* new NotFound({ resource, known: [...knownMonitors].toSorted() })
    }
  })

  const refusalOf = (sink: string): string | null => sinkRefusal(sink, sinks.handle(sink))

  const canTake = (sink: string): Effect.Effect<void, Conflict> => {
    const reason = refusalOf(sink)
    return reason === null ? Effect.void : Effect.fail(new Conflict({ reason }))
  }

  /** Whether a replay of the letter is under way in this process. */
  const isUnderWay = (network: string) =>
    tenureOf(network).pipe(
      Effect.map(({ replays }) => replays.isUnderWay),
      Effect.orElseSucceed(() => () => false),
    )

  const viewsOf = (network: string) =>
    Effect.map(isUnderWay(network), (underway) => (row: DeadLetterRow): DeadLetter => {
      const whyNot = noReplay(row) ?? (refusalOf(row.sink) !== null || underway(row.seq) ? "CONFLICT" : null)
      return { ...row, id: deadLetterId(row), replayable: whyNot === null, whyNot }
    })

  /** Reads letters page by page, in the order of dying, until `onPage` has had enough. */
  const walk = Effect.fnUntraced(function* <E>(
    filter: LetterFilter,
    onPage: (rows: ReadonlyArray<DeadLetterRow>) => Effect.Effect<boolean, E>,
  ) {
    let after = 0
    while (true) {
      const page = yield* storage.deadLetters(filter, { after, limit: STEP })
      const goesOn = yield* onPage(page)
      if (!goesOn || page.length < STEP) return
      after = page.at(-1)!.died
      yield* Effect.yieldNow
    }
  })

  return DeadLetters.of({
    list: Effect.fn("DeadLetters.list")(function* (request: DeadLettersRequest) {
      const { first, after, ...filter } = request
      const place = yield* placeOf(after)
      yield* checkNames(filter)
      const limit = Math.max(1, Math.min(first, MAX_PAGE))
      const rows = yield* storage.deadLetters(filter, { after: place, limit: limit + 1 })
      const totalCount = yield* storage.deadLetterCount(filter)
      const view = yield* viewsOf(filter.network)
      const items = rows.slice(0, limit).map((row) => ({ cursor: deadLetterCursor(row.died), node: view(row) }))
      return { items, hasNextPage: rows.length > limit, endCursor: items.at(-1)?.cursor ?? null, totalCount }
    }),

    replay: Effect.fn("DeadLetters.replay")(function* (id) {
      const { network, seq } = yield* keyOf(id)
      const { replays } = yield* tenureOf(network)
      const letter = yield* storage.deadLetter(network, seq)
      if (letter === null) return yield* missing(id)
      const code = noReplay(letter)
      if (code !== null) return yield* new NotReplayable({ id, code })
      if (replays.isUnderWay(seq)) return yield* underWay(id)
      yield* canTake(letter.sink)
      const replayed = yield* replays.send(letter, byDefinition)
      switch (replayed._tag) {
        case "Delivered":
          return { delivered: true, deadLetter: null }
        case "Dead": {
          const kept = yield* storage.deadLetter(network, seq)
          return { delivered: false, deadLetter: kept === null ? null : (yield* viewsOf(network))(kept) }
        }
        case "Left":
          return yield* new Conflict({ reason: replayed.reason })
        case "Refused":
          return yield* replayed.why === "NOT_FOUND" ? missing(id) : new NotReplayable({ id, code: replayed.why })
      }
    }),

    replayAll: Effect.fn("DeadLetters.replayAll")(function* (filter, first, after = null) {
      const { replays } = yield* tenureOf(filter.network)
      const place = yield* placeOf(after)
      yield* checkNames(filter)
      if (filter.sink !== undefined) yield* canTake(filter.sink)
      const what = { filter, after: place, first: Math.max(1, Math.min(first, MAX_REPLAYS)), refusalOf }
      // Whoever asked for it may be gone long before it ends.
      const { end, ...counts } = yield* Fiber.join(yield* Effect.forkIn(replayAll(replays, storage, what), scope))
      return { ...counts, endCursor: end === null ? null : deadLetterCursor(end) }
    }),

    endReplays,

    discard: Effect.fn("DeadLetters.discard")(function* (id) {
      const { network, seq } = yield* keyOf(id)
      const { owner, replays } = yield* tenureOf(network)
      const discarded = yield* replays.holding([seq], (held): Change<number> =>
        held.length === 0 ? Effect.fail(underWay(id)) : storage.discard(owner, held),
      )
      if (discarded === 0) return yield* missing(id)
      yield* Effect.logInfo("a dead letter was discarded on request").pipe(Effect.annotateLogs({ network }))
    }),

    discardAll: Effect.fn("DeadLetters.discardAll")(function* (filter) {
      const { owner, replays } = yield* tenureOf(filter.network)
      yield* checkNames(filter)
      // What dies meanwhile, nobody has seen yet.
      let left = yield* storage.deadLetterCount(filter)
      let discarded = 0
      yield* walk(filter, (page) => {
        const known = page.slice(0, left)
        left -= known.length
        const seqs = known.map(({ seq }) => seq)
        const discard = replays.holding(seqs, (held) =>
          held.length === 0 ? Effect.succeed(0) : storage.discard(owner, held),
        )
        return Effect.map(discard, (count) => {
          discarded += count
          return left > 0
        })
      })
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
