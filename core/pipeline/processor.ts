import { type Cause, Clock, Effect, Latch, Option, Queue } from "effect"
import { compareCursors, type Cursor, formatCursor } from "../model/cursor.ts"
import type { Anchor, LateBatch, SourceBatch } from "../plugin/source.ts"
import type { MintInput, NewMatch, NotOwner, Owner, Storage, StorageError } from "../storage/storage.ts"
import type { CheckpointWriter } from "./checkpoint-writer.ts"
import { groupByCursor } from "./group-matches.ts"
import type { InterestVersions } from "./interest-versions.ts"
import { matchEvents, type MatchReport, type SinksOf } from "./matcher.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"
import type { ProgressTracker, Slot } from "./tracker.ts"
import type { WorkItem } from "./sink-worker.ts"

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
  | { readonly _tag: "Batch"; readonly batch: SourceBatch }
  | { readonly _tag: "Late"; readonly batch: LateBatch }

/** Batches that wait to be matched; beyond it `emit` waits. */
const CAPACITY = 4

/** About how many matches are minted in one transaction, which keeps it to about 5 ms. */
const MINT = 100

/** How long an advance over quiet ground may wait to be written together with what follows, in ms. */
const QUIET_MS = 100

/** Anchors that make a quiet advance worth a write before its time is over. */
const QUIET_ANCHORS = 512

interface Pending {
  upTo: Cursor
  anchors: Array<Anchor>
  effective: Array<MintInput["effective"][number]>
  since: number
}

export const makeProcessor = Effect.fnUntraced(function* (options: {
  readonly network: string
  readonly storage: Storage["Service"]
  readonly owner: Owner
  readonly status: PipelineStatus
  readonly tracker: ProgressTracker
  readonly checkpoints: CheckpointWriter
  readonly interests: InterestVersions
  readonly sinksOf: SinksOf
  /** Whether a monitor's revision has its `effectiveFrom` already. */
  readonly isEffective: (monitor: string, matchRevision: string) => boolean
  readonly onEffective: (monitor: string, matchRevision: string, from: Cursor) => void
  readonly onPredicateFailure: (monitor: string, reason: string) => void
  /** How many rows a sink's worker takes at once. */
  readonly room: (sink: string) => number
  readonly dispatch: (items: ReadonlyArray<WorkItem>) => Effect.Effect<void>
  readonly onShown: (feedPosition: number) => Effect.Effect<void>
  readonly minted: () => Cursor | null
  readonly onMinted: (cursor: Cursor) => void
}): Effect.fn.Return<Processor> {
  const { network, storage, owner, status, tracker, checkpoints, interests } = options
  const queue = yield* Queue.bounded<Message, Cause.Done>(CAPACITY)
  const idle = yield* Latch.make(true)
  let pending: Pending | null = null
  /** The end of what was matched, written or pending; null until the first batch of this run. */
  let position: Cursor | null = null

  const report = Effect.fnUntraced(function* ({ undecodable, failures }: MatchReport) {
    if (undecodable.length > 0) {
      yield* Effect.logWarning(`${undecodable.length} events did not decode and were skipped: ${undecodable[0]}`)
    }
    for (const { monitor, reason } of failures) options.onPredicateFailure(monitor, reason)
    if (failures.length > 0) {
      const [first] = failures
      yield* Effect.logError(
        `the predicate of ${first!.monitor} failed on ${failures.length} events, kept as dead letters: ${first!.reason}`,
      )
    }
  })

  const mint = Effect.fnUntraced(function* (input: Omit<MintInput, "offer" | "checkpoint">) {
    const offer = new Map<string, number>()
    for (const match of input.matches) for (const sink of match.sinks) offer.set(sink, options.room(sink))
    const quiet = input.matches.length === 0 && tracker.inFlight === 0
    const checkpoint = quiet ? input.upTo : null
    const minted = yield* storage.mint(owner, { ...input, offer, checkpoint }).pipe(untilStored(status))
    options.onMinted(input.upTo)
    for (const { monitor, matchRevision, from } of input.effective) options.onEffective(monitor, matchRevision, from)
    if (minted.shown > 0) yield* options.onShown(minted.feedPosition)
    const items: Array<WorkItem> = []
    for (const { cursor, rows } of groupByCursor(minted.rows)) {
      const slot: Slot = tracker.begin(cursor, rows.length)
      for (const row of rows) items.push({ row, slot })
    }
    tracker.begin(input.upTo, 0)
    if (checkpoint !== null) yield* checkpoints.stored(checkpoint)
    else checkpoints.wake()
    if (items.length > 0) yield* options.dispatch(items)
  })

  const flush = Effect.suspend(() => {
    if (pending === null) return Effect.void
    const { upTo, anchors, effective } = pending
    pending = null
    return mint({ upTo, anchors, effective, matches: [] })
  })

  const processBatch = Effect.fnUntraced(function* (batch: SourceBatch) {
    const before = position ?? options.minted()
    if (before !== null && compareCursors(batch.upTo, before) < 0) {
      yield* Effect.logWarning(
        `the source emitted up to ${formatCursor(batch.upTo)}, behind ${formatCursor(before)}: ignored`,
      )
      return
    }
    const monitors = interests.take(batch.interests)
    const matched = matchEvents(network, monitors, options.sinksOf, batch.events, before)
    yield* report(matched)
    const now = yield* Clock.currentTimeMillis
    pending ??= { upTo: batch.upTo, anchors: [], effective: [], since: now }
    const from = before ?? batch.upTo
    for (const { id, matchRevision } of monitors.values()) {
      if (options.isEffective(id, matchRevision)) continue
      if (pending.effective.some((e) => e.monitor === id && e.matchRevision === matchRevision)) continue
      pending.effective.push({ monitor: id, matchRevision, from })
    }
    position = batch.upTo
    for (const group of chunks(matched.matches)) {
      const { anchors, effective }: Pending = pending
      pending = { upTo: batch.upTo, anchors: [], effective: [], since: now }
      yield* mint({ upTo: group.at(-1)!.cursor, anchors, effective, matches: group })
    }
    pending.upTo = batch.upTo
    for (const anchor of batch.resume) pending.anchors.push(anchor)
    if (pending.anchors.length >= QUIET_ANCHORS) yield* flush
  })

  const processLate = Effect.fnUntraced(function* (batch: LateBatch) {
    yield* flush
    const matched = matchEvents(network, interests.peek(batch.interests), options.sinksOf, batch.events, null)
    yield* report(matched)
    const hashes = new Map(batch.resume.map(({ primary, hash }) => [primary, hash]))
    const matches = matched.matches.flatMap((match) => {
      const hash = hashes.get(match.cursor.primary)
      return hash === undefined ? [] : [{ ...match, hash }]
    })
    if (matches.length === 0) return
    const minted = yield* storage.mintLate(owner, { anchors: batch.resume, matches }).pipe(untilStored(status))
    if (minted.shown > 0) yield* options.onShown(minted.feedPosition)
    yield* options.dispatch(minted.rows.map((row) => ({ row, slot: null })))
  })

  const next = Effect.suspend(() => {
    if (pending === null) return Effect.asSome(Queue.take(queue))
    const waiting = pending
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const rest = waiting.since + QUIET_MS - now
      if (rest <= 0) return Effect.succeedNone
      // Only the look is raced with the clock: a message is taken when nothing can interrupt the taking.
      return Effect.timeoutOption(Queue.peek(queue), rest).pipe(
        Effect.flatMap((seen) => (Option.isNone(seen) ? Effect.succeedNone : Effect.asSome(Queue.take(queue)))),
      )
    })
  })

  const step = next.pipe(
    Effect.flatMap(
      Option.match({
        onNone: () => flush,
        onSome: (message) => (message._tag === "Batch" ? processBatch(message.batch) : processLate(message.batch)),
      }),
    ),
    Effect.tap(() =>
      Effect.sync(() => {
        if (Queue.sizeUnsafe(queue) === 0 && pending === null) idle.openUnsafe()
      }),
    ),
  )

  const accept = (message: Message) =>
    Effect.suspend(() => {
      idle.closeUnsafe()
      return Effect.asVoid(Queue.offer(queue, message))
    })

  return {
    emit: (batch) => accept({ _tag: "Batch", batch }),
    late: (batch) => accept({ _tag: "Late", batch }),
    run: step.pipe(
      Effect.forever,
      Effect.catchTag("Done", () => flush),
    ),
    end: Effect.asVoid(Queue.end(queue)),
    settled: idle.await,
  }
})

/** Pieces of about `MINT` matches that never part the matches of one cursor. */
const chunks = (matches: ReadonlyArray<NewMatch>): ReadonlyArray<ReadonlyArray<NewMatch>> => {
  const pieces: Array<ReadonlyArray<NewMatch>> = []
  let start = 0
  while (start < matches.length) {
    let end = Math.min(start + MINT, matches.length)
    while (end < matches.length && compareCursors(matches[end]!.cursor, matches[end - 1]!.cursor) === 0) end++
    pieces.push(matches.slice(start, end))
    start = end
  }
  return pieces
}
