import { Cause, Clock, Deferred, Effect, Exit, Fiber, FiberSet, Option, Scope } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { LateBatch, SourceBatch } from "../plugin/source.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { EventTerms } from "../storage/events.ts"
import type { DeliveryRow, Owner, Storage } from "../storage/storage.ts"
import { byDefinition } from "./attempt-policy.ts"
import { BufferAge } from "./buffer-age.ts"
import { makeCheckpointWriter } from "./checkpoint-writer.ts"
import { Draining } from "./draining.ts"
import type { InterestVersions } from "./interest-versions.ts"
import type { HeldLease } from "./lease.ts"
import type { CompiledMonitor, SinksOf } from "./matcher.ts"
import { exposeBuffer, type NetworkMetrics } from "./metrics.ts"
import { makeProcessor } from "./processor.ts"
import { makeSettler } from "./settler.ts"
import type { SinkHandle } from "./sink-handle.ts"
import { makeSinkWorker, type SinkWorker } from "./sink-worker.ts"
import type { WorkItem } from "./work-item.ts"
import type { PipelineStatus } from "./status.ts"
import { ProgressTracker, type Slot } from "./tracker.ts"

export type PipelineFault = StorageError | NotOwner

/** A network's pipeline: everything between its source and its sinks, in one scope. */
export interface Pipeline {
  readonly emit: (batch: SourceBatch) => Effect.Effect<void>
  readonly late: (batch: LateBatch) => Effect.Effect<void>
  /** The end of what is minted; null before a start was resolved. */
  readonly minted: () => Cursor | null
  /** Stores the resolved start. */
  readonly begin: (start: Cursor) => Effect.Effect<void, PipelineFault>
  /** Succeeds when everything emitted so far is minted. */
  readonly settled: Effect.Effect<void>
  /** Sends rows of before that are owed again; waits for nothing. */
  readonly handOver: (rows: ReadonlyArray<DeliveryRow>) => Effect.Effect<void>
  readonly inFlight: () => number
  /** Fails, or dies, with what ended one of the pipeline's own fibers; the pipeline is of no use then. */
  readonly fault: Effect.Effect<never, PipelineFault>
  /**
   * Ends cooperatively, after its source has ended: mints what was emitted and delivers what is queued, for as long as
   * `deadlineMs`, then writes outcomes and the checkpoint. Failing sinks get no further attempt. With `leaveAfter`,
   * nothing more is minted, and of the rows behind that cursor only attempts that have begun are finished. Answers
   * whether everything was done; what was not stays owed.
   */
  readonly drain: (how: {
    readonly deadlineMs: number
    readonly leaveAfter: Cursor | null
  }) => Effect.Effect<boolean, PipelineFault>
}

const slotKey = (cursor: Cursor): string => `${cursor.primary}:${cursor.secondary}`

export const makePipeline = Effect.fnUntraced(function* (options: {
  readonly owner: Owner
  readonly lease: HeldLease
  readonly metrics: NetworkMetrics
  readonly storage: Storage["Service"]
  /** What makes events for the program's actions; undefined if it has none. */
  readonly events?: EventTerms
  readonly status: PipelineStatus
  readonly interests: InterestVersions
  readonly sinksOf: SinksOf
  /** Whether a sink has a durable buffer does not change while a pipeline is open. */
  readonly sinkHandle: (sink: string) => SinkHandle
  /** Is told that a sink's receiver is gone for good; pauses the sink at once. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
  readonly isEffective: (monitor: CompiledMonitor) => boolean
  /** The cursor behind which a monitor, as it is now, sees events; null before its first batch, or if it is gone. */
  readonly effectiveFrom: (monitor: CompiledMonitor) => Cursor | null
  readonly onEffective: (monitor: CompiledMonitor, from: Cursor) => void
  readonly onWaiting: (monitor: CompiledMonitor, reason: string) => void
  readonly onPredicateFailure: (monitor: string, reason: string) => void
  readonly onShown: (feedPosition: number) => Effect.Effect<void>
  readonly onCheckpoint: (cursor: Cursor, at: number) => Effect.Effect<void>
}): Effect.fn.Return<Pipeline, PipelineFault, Scope.Scope> {
  const { owner, lease, metrics, storage, status } = options
  const { network } = owner
  const fault = yield* Deferred.make<never, PipelineFault>()
  const tracker = new ProgressTracker()
  const row = yield* storage.pipeline(network)
  let minted = row?.minted ?? null
  const draining = new Draining()

  /** Forks a fiber whose end other than by success, or by the end of the pipeline, is the pipeline's fault. */
  const fibers = yield* FiberSet.make<void, PipelineFault>()
  let ending = false
  const supervise = (effect: Effect.Effect<void, PipelineFault>) =>
    FiberSet.run(
      fibers,
      Effect.onExit(effect, (exit) =>
        Exit.isFailure(exit) && !(ending && Cause.hasInterruptsOnly(exit.cause))
          ? Effect.asVoid(Deferred.failCause(fault, exit.cause))
          : Effect.void,
      ),
    )

  const checkpoints = yield* makeCheckpointWriter({
    storage,
    owner,
    status,
    tracker,
    initial: row?.checkpoint ?? null,
    onStored: options.onCheckpoint,
  })
  const settler = yield* makeSettler({
    storage,
    owner,
    status,
    metrics,
    onWritten: (slots) => {
      for (const slot of slots) tracker.complete(slot)
      checkpoints.wake()
    },
  })

  // Slots of owed rows stand before anything new, so that the checkpoint waits for them as before the restart.
  const openSlots = new Map<string, Slot>()
  for (const { cursor, rows } of yield* storage.openSlots(network)) {
    openSlots.set(slotKey(cursor), tracker.begin(cursor, rows))
  }
  if (minted !== null) tracker.begin(minted, 0)
  checkpoints.wake()

  const toItem = (owed: DeliveryRow): WorkItem => ({
    row: owed,
    slot: owed.slot ? (openSlots.get(slotKey(owed.cursor)) ?? null) : null,
    span: null,
  })

  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const owedSinks = new Set(yield* storage.owedSinks(network))
  const workers = new Map<string, SinkWorker>()
  const workerFibers: Array<Fiber.Fiber<void, PipelineFault>> = []
  const ensureWorker = Effect.fnUntraced(function* (sink: string) {
    const existing = workers.get(sink)
    if (existing !== undefined) return existing
    const handle = options.sinkHandle(sink)
    const age = new BufferAge({ network, sink, storage, status, clock })
    const worker = makeSinkWorker({
      sink,
      handle,
      isDurable: handle.isDurable,
      storage,
      owner,
      lease,
      metrics,
      status,
      settler,
      draining,
      policy: byDefinition,
      clock,
      onGone: options.onGone,
      readsOwed: owedSinks.has(sink),
      toItem,
      beforePull: age.look,
    })
    workers.set(sink, worker)
    workerFibers.push(yield* supervise(worker.run))
    if (worker.pulls) {
      yield* exposeBuffer(network, sink, () => (worker.isIdle() ? 0 : age.seconds)).pipe(Scope.provide(scope))
    }
    return worker
  })

  /** Completes when a sink's owed rows of earlier runs are on their way; what is minted now follows behind them. */
  const readBack = Effect.fnUntraced(function* (sink: string) {
    const worker = yield* ensureWorker(sink)
    yield* worker.readBack
  })

  const dispatch = Effect.fnUntraced(function* (items: ReadonlyArray<WorkItem>) {
    const bySink = new Map<string, Array<WorkItem>>()
    for (const item of items) {
      const list = bySink.get(item.row.sink)
      if (list === undefined) bySink.set(item.row.sink, [item])
      else list.push(item)
    }
    for (const [sink, list] of bySink) {
      const worker = yield* ensureWorker(sink)
      if (worker.pulls) worker.wake()
      else yield* worker.told(worker.enqueue(list))
    }
  })

  const processor = yield* makeProcessor({
    network,
    storage,
    ...(options.events === undefined ? {} : { events: options.events }),
    owner,
    metrics,
    status,
    tracker,
    checkpoints,
    interests: options.interests,
    sinksOf: options.sinksOf,
    isEffective: options.isEffective,
    effectiveFrom: options.effectiveFrom,
    onEffective: options.onEffective,
    onWaiting: options.onWaiting,
    onPredicateFailure: options.onPredicateFailure,
    room: (sink) => {
      const worker = workers.get(sink)
      return worker === undefined ? 0 : worker.room()
    },
    isDurable: (sink) => options.sinkHandle(sink).isDurable,
    dispatch,
    onShown: options.onShown,
    minted: () => minted,
    onMinted: (cursor) => {
      minted = cursor
    },
  })

  const settlerFiber = yield* supervise(settler.run)
  yield* supervise(checkpoints.run)
  const processorFiber = yield* supervise(
    // Owed rows of all sinks at once: one that is slow does not keep the others waiting.
    Effect.forEach(owedSinks, readBack, { concurrency: "unbounded", discard: true }).pipe(
      Effect.andThen(processor.run),
    ),
  )

  return {
    emit: processor.emit,
    late: processor.late,
    minted: () => minted,
    begin: (start) =>
      storage.begin(owner, start).pipe(
        Effect.andThen(() => {
          minted = start
          tracker.begin(start, 0)
          return checkpoints.flush
        }),
      ),
    settled: processor.settled,
    handOver: Effect.fnUntraced(function* (rows: ReadonlyArray<DeliveryRow>) {
      // A worker that is made behind the drain would not be told to end; the rows are owed to the next start.
      if (draining.isBegun) return
      for (const [sink, ofSink] of Map.groupBy(rows, (each) => each.sink)) {
        const worker = yield* ensureWorker(sink)
        worker.enqueueAgain(ofSink.map((again) => ({ row: again, slot: null, span: null })))
      }
    }),
    inFlight: () => tracker.inFlight,
    fault: Deferred.await(fault),
    drain: Effect.fnUntraced(function* ({ deadlineMs, leaveAfter }) {
      draining.begin(leaveAfter)
      if (leaveAfter !== null) {
        ending = true
        yield* Fiber.interrupt(processorFiber)
      }
      const deliver = Effect.gen(function* () {
        yield* processor.end
        yield* Fiber.await(processorFiber)
        for (const worker of workers.values()) yield* worker.end
        yield* Effect.forEach(workerFibers, (fiber) => Fiber.await(fiber), { discard: true })
      })
      const delivered = yield* Effect.timeoutOption(deliver, deadlineMs)
      ending = true
      yield* Fiber.interruptAll([processorFiber, ...workerFibers])
      // What was delivered in time is written also when the rest was not, or it would be sent again.
      yield* settler.end
      yield* Fiber.await(settlerFiber)
      yield* checkpoints.flush
      return Option.isSome(delivered)
    }),
  }
})
