import { type Cause, Clock, Deferred, Effect, Option, Queue, type Tracer } from "effect"
import { compareCursors, type Cursor, formatCursor, isAfter } from "../model/cursor.ts"
import type { Anchor, LateBatch, RecordId, SourceBatch, SourceEvent, SourceRecord } from "../plugin/source.ts"
import { inSpan, presentSpan, type SpanOptions, traceparentOf } from "../plugin/tracing.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import { ACTIONS, type EventTerms } from "../storage/events.ts"
import type { DeliveryRow, NewMatch, Owner, Storage } from "../storage/storage.ts"
import type { CheckpointWriter } from "./checkpoint-writer.ts"
import { groupByCursor } from "./group-matches.ts"
import type { InterestVersions } from "./interest-versions.ts"
import { type CompiledMonitor, failureText, matchEvents, type MatchReport, type SinksOf } from "./matcher.ts"
import { untilStored } from "./persist.ts"
import { checkRecords, isAmong } from "./records.ts"
import type { NetworkMetrics } from "./metrics.ts"
import type { PipelineStatus } from "./status.ts"
import type { ProgressTracker, Slot } from "./tracker.ts"
import type { WorkItem } from "./work-item.ts"

/** Matches what the source emits, mints it, and hands the rows to the sinks' workers. */
export interface Processor {
  readonly emit: (batch: SourceBatch) => Effect.Effect<void>
  readonly late: (batch: LateBatch) => Effect.Effect<void>
  readonly run: Effect.Effect<void, StorageError | NotOwner>
  /** Nothing follows: `run` ends when what was emitted is minted and handed over. */
  readonly end: Effect.Effect<void>
  /** Succeeds when everything emitted so far is minted. */
  readonly settled: Effect.Effect<void>
}

type Message =
  | { readonly _tag: "Batch"; readonly batch: SourceBatch; readonly span: Tracer.AnySpan | null }
  | { readonly _tag: "Late"; readonly batch: LateBatch; readonly span: Tracer.AnySpan | null }
  | { readonly _tag: "Settle"; readonly done: Deferred.Deferred<void> }

/** Batches that wait to be matched; beyond it `emit` waits. */
const CAPACITY = 2

/** About how many matches are minted in one transaction, which keeps it to about 5 ms. */
const MINT = 100

/** Turns that busy workers get to finish first: for an idle one the piece is minted offered, which saves a write. */
const TURNS = 16

/** How long an advance over quiet ground may wait to be written together with what follows, in ms. */
const QUIET_MS = 250

/** Anchors and records that make a quiet advance worth a write before its time is over. */
const QUIET_ROWS = 512

type Effective = ReadonlyArray<{ readonly monitor: CompiledMonitor; readonly from: Cursor }>

/** A piece of the feed as it is written, beside its matches. */
interface Ground {
  readonly upTo: Cursor
  readonly anchors: ReadonlyArray<Anchor>
  readonly records: ReadonlyArray<SourceRecord>
  readonly forget: ReadonlyArray<RecordId>
  /** Monitors that saw their first batch. */
  readonly effective: Effective
}

/** What was matched and is not written yet: ground without matches. */
interface Pending extends Ground {
  readonly since: number
}

export const makeProcessor = Effect.fnUntraced(function* (options: {
  readonly network: string
  readonly storage: Storage["Service"]
  /** What makes events of rows of the sink `actions`; undefined if the program has no actions. */
  readonly events?: EventTerms
  readonly owner: Owner
  readonly metrics: NetworkMetrics
  readonly status: PipelineStatus
  readonly tracker: ProgressTracker
  readonly checkpoints: CheckpointWriter
  readonly interests: InterestVersions
  readonly sinksOf: SinksOf
  /** False for a monitor, as it is now, whose first batch is still to come; an edited or deleted one needs none. */
  readonly isEffective: (monitor: CompiledMonitor) => boolean
  /** The cursor behind which a monitor, as it is now, sees events; null before its first batch, or if it is gone. */
  readonly effectiveFrom: (monitor: CompiledMonitor) => Cursor | null
  readonly onEffective: (monitor: CompiledMonitor, from: Cursor) => void
  /** Is told why a monitor has not taken effect yet. */
  readonly onWaiting: (monitor: CompiledMonitor, reason: string) => void
  readonly onPredicateFailure: (monitor: string, reason: string) => void
  /** How many rows a sink's worker takes at once: 0 while it is busy, null when it never does. */
  readonly room: (sink: string) => number | null
  /** Whether a sink has a durable buffer. */
  readonly isDurable: (sink: string) => boolean
  readonly dispatch: (items: ReadonlyArray<WorkItem>) => Effect.Effect<void>
  readonly onShown: (feedPosition: number) => Effect.Effect<void>
  readonly minted: () => Cursor | null
  readonly onMinted: (cursor: Cursor) => void
}): Effect.fn.Return<Processor> {
  const { network, storage, owner, metrics, status, tracker, checkpoints, interests } = options
  const queue = yield* Queue.bounded<Message, Cause.Done>(CAPACITY)
  let pending: Pending | null = null
  /** The end of what was matched, written or pending; null until the first batch of this run. */
  let position: Cursor | null = null

  const report = Effect.fnUntraced(function* ({ undecodable, failures }: MatchReport) {
    if (undecodable.length > 0) {
      metrics.count("undecodable", undecodable.length)
      yield* Effect.logWarning(`${undecodable.length} events did not decode and were skipped: ${undecodable[0]}`)
    }
    for (const failure of failures) {
      metrics.count("predicateFailures", 1, { monitor: failure.monitor })
      options.onPredicateFailure(failure.monitor, failureText(failure))
    }
    if (failures.length > 0) {
      const [first] = failures
      yield* Effect.logError(
        `the ${first!.path} of ${first!.monitor} failed on ${failures.length} events, kept as dead letters: ${first!.reason}`,
      )
    }
  })

  const minting = (matches: ReadonlyArray<NewMatch>): SpanOptions => ({
    attributes: { "blockwatcher.network": network, "blockwatcher.matches": matches.length },
  })

  const mint = (ground: Ground, matches: ReadonlyArray<NewMatch>) => {
    const written = (span: Tracer.Span | null) =>
      Effect.suspend(() => {
        const writing = write(ground, matches, span)
        return ground.effective.length === 0 ? writing : interests.recording(writing)
      })
    // Quiet ground may be that of several batches, and nothing follows from it.
    const items = matches.length === 0 ? written(null) : inSpan("mint", () => minting(matches), written)
    return Effect.flatMap(items, (items) => (items.length > 0 ? options.dispatch(items) : Effect.void))
  }

  /** What is for actions is stored, and no worker has to have room for it. */
  const isSent = (sink: string): boolean => options.events === undefined || sink !== ACTIONS

  const write = Effect.fnUntraced(function* (
    { upTo, anchors, records, forget, effective: seen }: Ground,
    matches: ReadonlyArray<NewMatch>,
    span: Tracer.Span | null,
  ) {
    const sinks = [...new Set(matches.flatMap((match) => match.sinks))].filter(isSent)
    for (let turn = 0; turn < TURNS && sinks.some((sink) => options.room(sink) === 0); turn++) yield* Effect.yieldNow
    const offer = new Map(sinks.map((sink) => [sink, options.room(sink) ?? 0]))
    const durable = new Set(sinks.filter(options.isDurable))
    // A monitor that was edited since it was matched has another revision, whose first batch is still to come.
    const effective = seen.filter(({ monitor }) => !options.isEffective(monitor))
    const checkpoint = matches.length === 0 && tracker.inFlight === 0 ? upTo : null
    const minted = yield* storage
      .mint(owner, {
        ...options.events,
        upTo,
        anchors,
        records,
        forget,
        matches,
        offer,
        durable,
        checkpoint,
        traceparent: traceparentOf(span),
        effective: effective.map(({ monitor: { id, matchRevision }, from }) => ({ monitor: id, matchRevision, from })),
      })
      .pipe(untilStored(status))
    options.onMinted(upTo)
    if (matches.length > 0) metrics.minted(matches, minted.rows, yield* Clock.currentTimeMillis)
    for (const { monitor, from } of effective) options.onEffective(monitor, from)
    if (minted.shown > 0) yield* options.onShown(minted.feedPosition)
    const slots = new Map<DeliveryRow, Slot>()
    for (const { cursor, rows } of groupByCursor(minted.rows.filter(({ slot }) => slot))) {
      const slot = tracker.begin(cursor, rows.length)
      for (const row of rows) slots.set(row, slot)
    }
    tracker.begin(upTo, 0)
    const items = minted.rows.map((row): WorkItem => ({ row, slot: slots.get(row) ?? null, span }))
    if (checkpoint !== null) yield* checkpoints.stored(checkpoint)
    else checkpoints.wake()
    return items
  })

  const flush = Effect.suspend(() => {
    if (pending === null) return Effect.void
    const ground = pending
    pending = null
    return mint(ground, [])
  })

  /**
   * The version of the interests whose first-seen monitors are known, and those of it that wait for their source: a batch
   * costs nothing for the others.
   */
  let noted: { readonly version: number; readonly waiting: ReadonlyArray<CompiledMonitor> } | null = null

  /** The monitors that take effect with a batch, beside those `before` it. */
  const takingEffect = (
    monitors: Iterable<CompiledMonitor>,
    batch: SourceBatch,
    before: Effective,
    from: Cursor,
  ): Effective => {
    const unsure = noted?.version === batch.interests ? noted.waiting : monitors
    const effective = [...before]
    const seen = new Set(before.map(({ monitor }) => monitor))
    const waiting: Array<CompiledMonitor> = []
    for (const monitor of unsure) {
      if (options.isEffective(monitor) || seen.has(monitor)) continue
      const why = batch.pending?.get(monitor.id)
      if (why === undefined) {
        effective.push({ monitor, from })
        continue
      }
      waiting.push(monitor)
      options.onWaiting(monitor, why)
    }
    noted = { version: batch.interests, waiting }
    return effective
  }

  /** Adds a batch to what is pending. */
  const extend = (batch: SourceBatch, monitors: Iterable<CompiledMonitor>, from: Cursor, now: number): Pending => {
    const { upTo, resume, records = [], forget = [] } = batch
    const before = pending ?? { anchors: [], records: [], forget: [], effective: [], since: now }
    return {
      upTo,
      anchors: [...before.anchors, ...resume],
      records: [...before.records.filter((record) => !isAmong(forget, record)), ...records],
      forget: [...before.forget, ...forget],
      effective: takingEffect(monitors, batch, before.effective, from),
      since: before.since,
    }
  }

  const processBatch = Effect.fnUntraced(function* (batch: SourceBatch) {
    const before = position ?? options.minted()
    if (before !== null && compareCursors(batch.upTo, before) < 0) {
      yield* Effect.logWarning(
        `the source emitted up to ${formatCursor(batch.upTo)}, behind ${formatCursor(before)}: ignored`,
      )
      return
    }
    checkRecords(batch.records, batch.upTo)
    if (batch.events.length > 0) {
      metrics.count("events", batch.events.length)
      metrics.age("seen", batch.events.at(-1)!.time, yield* Clock.currentTimeMillis)
    }
    const monitors = interests.take(batch.interests)
    const matched = matchEvents(network, monitors, options.sinksOf, batch.events, before)
    yield* report(matched)
    pending = extend(batch, monitors.values(), before ?? batch.upTo, yield* Clock.currentTimeMillis)
    position = batch.upTo
    if (matched.matches.length === 0) {
      // At the head nothing follows soon that could be written along.
      const atHead = status.head !== null && compareCursors(batch.upTo, status.head) >= 0
      const { anchors, records, forget } = pending
      const isMuch = anchors.length + records.length + forget.length >= QUIET_ROWS
      return yield* atHead || isMuch ? flush : Effect.void
    }
    let rest: Ground = pending
    pending = null
    for (const { matches, last } of chunks(matched.matches)) {
      const [piece, behind] = last ? [rest, rest] : cut(rest, matches.at(-1)!.cursor)
      yield* mint(piece, matches)
      rest = behind
    }
  })

  const processLate = Effect.fnUntraced(function* (batch: LateBatch) {
    yield* flush
    const minted = options.minted()
    // What lies ahead is found in its turn, and what lies before a monitor's first batch is none of its events.
    const isBehind = ({ cursor }: { readonly cursor: Cursor }) => minted !== null && compareCursors(cursor, minted) <= 0
    checkRecords(batch.records)
    const monitors = interests.peek(batch.interests)
    const seenBy = (event: SourceEvent): SourceEvent => ({
      cursor: event.cursor,
      index: event.index,
      time: event.time,
      interests: event.interests.filter((id) => {
        const monitor = monitors.get(id)
        const from = monitor === undefined ? null : options.effectiveFrom(monitor)
        return from !== null && isAfter(event.cursor, from)
      }),
      fields: () => event.fields(),
    })
    const matched = matchEvents(network, monitors, options.sinksOf, batch.events.filter(isBehind).map(seenBy), null)
    yield* report(matched)
    const hashes = new Map(batch.resume.map(({ primary, hash }) => [primary, hash]))
    const withHash = <A extends { readonly cursor: Cursor }>(found: A) => {
      const hash = hashes.get(found.cursor.primary)
      return hash === undefined ? [] : [{ ...found, hash }]
    }
    const found = matched.matches.flatMap(withHash)
    let records = (batch.records ?? []).filter(isBehind).flatMap(withHash)
    const pieces = found.length === 0 && records.length > 0 ? [{ matches: [] }] : chunks(found)
    for (const { matches } of pieces) {
      const items = yield* inSpan(
        "mint",
        () => minting(matches),
        Effect.fnUntraced(function* (span) {
          const late = yield* storage
            .mintLate(owner, {
              ...options.events,
              anchors: batch.resume,
              matches,
              records,
              traceparent: traceparentOf(span),
            })
            .pipe(untilStored(status))
          if (late.shown > 0) yield* options.onShown(late.feedPosition)
          return late.rows.map((row): WorkItem => ({ row, slot: null, span }))
        }),
      )
      records = []
      yield* options.dispatch(items)
    }
  })

  const next = Effect.suspend(() => {
    if (pending === null) return Effect.asSome(Queue.take(queue))
    const waiting = pending
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const rest = waiting.since + QUIET_MS - now
      if (rest <= 0) return Effect.succeedNone
      // What waits is taken before anyone else has a turn, who would only add to it: batches that wait are memory that the
      // garbage collector copies.
      if (Queue.sizeUnsafe(queue) > 0) return Effect.asSome(Queue.take(queue))
      // Only the look is raced with the clock: a message is taken when nothing can interrupt the taking.
      return Effect.timeoutOption(Queue.peek(queue), rest).pipe(
        Effect.flatMap((seen) => (Option.isNone(seen) ? Effect.succeedNone : Effect.asSome(Queue.take(queue)))),
      )
    })
  })

  const matching = ({ batch, span }: Exclude<Message, { readonly _tag: "Settle" }>): SpanOptions => ({
    parents: span === null ? [] : [span],
    attributes: {
      "blockwatcher.network": network,
      "blockwatcher.events": batch.events.length,
      ...("upTo" in batch ? { "blockwatcher.cursor": formatCursor(batch.upTo) } : {}),
    },
  })

  const handle = (message: Message): Effect.Effect<void, StorageError | NotOwner> => {
    if (message._tag === "Settle")
      return Effect.andThen(flush, Effect.asVoid(Deferred.succeed(message.done, undefined)))
    const process = () => (message._tag === "Batch" ? processBatch(message.batch) : processLate(message.batch))
    return inSpan("match", () => matching(message), process)
  }
  const step = Effect.flatMap(next, Option.match({ onNone: () => flush, onSome: handle }))
  const accept = (message: Message) => Effect.asVoid(Queue.offer(queue, message))

  return {
    emit: (batch) => Effect.flatMap(presentSpan, (span) => accept({ _tag: "Batch", batch, span })),
    late: (batch) => Effect.flatMap(presentSpan, (span) => accept({ _tag: "Late", batch, span })),
    run: step.pipe(
      Effect.forever({ disableYield: true }),
      Effect.catchTag("Done", () => flush),
    ),
    end: Effect.asVoid(Queue.end(queue)),
    settled: Effect.gen(function* () {
      const done = yield* Deferred.make<void>()
      yield* accept({ _tag: "Settle", done })
      yield* Deferred.await(done)
    }),
  }
})

/**
 * Cuts ground at a cursor. Hashes and records are written with the piece in which they lie, so that a restart behind it
 * finds them, and none of what it has to read again.
 */
const cut = ({ upTo, anchors, records, forget, effective }: Ground, at: Cursor): readonly [Ground, Ground] => {
  const isBehind = ({ cursor }: SourceRecord) => compareCursors(cursor, at) > 0
  const first = anchors.findIndex(({ primary }) => primary > at.primary)
  const until = first === -1 ? anchors.length : first
  return [
    {
      upTo: at,
      anchors: anchors.slice(0, until),
      records: records.filter((record) => !isBehind(record)),
      forget,
      effective,
    },
    { upTo, anchors: anchors.slice(until), records: records.filter(isBehind), forget: [], effective: [] },
  ]
}

/** Pieces of about `MINT` matches that never part the matches of one cursor. */
function* chunks<M extends NewMatch>(
  matches: ReadonlyArray<M>,
): Iterable<{ readonly matches: ReadonlyArray<M>; readonly last: boolean }> {
  let start = 0
  while (start < matches.length) {
    let end = Math.min(start + MINT, matches.length)
    while (end < matches.length && compareCursors(matches[end]!.cursor, matches[end - 1]!.cursor) === 0) end++
    yield { matches: matches.slice(start, end), last: end === matches.length }
    start = end
  }
}
