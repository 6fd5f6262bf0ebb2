import { type Cause, Effect, Queue } from "effect"
import type { Retry } from "../model/resource.ts"
import { deliveryId, type Match, matchBody, retractedBody, type SinkEvent } from "../model/sink-event.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { DeliveryRow, Owner, Storage } from "../storage/storage.ts"
import type { AttemptPolicy } from "./attempt-policy.ts"
import { deliverWithRetry, type DeliveryResult } from "./delivery.ts"
import type { Draining } from "./draining.ts"
import type { HeldLease } from "./lease.ts"
import { untilStored } from "./persist.ts"
import type { NetworkMetrics } from "./metrics.ts"
import type { Settler } from "./settler.ts"
import type { SinkHandle, SinkRuntime } from "./sink-handle.ts"
import type { PipelineStatus } from "./status.ts"
import type { WorkItem } from "./work-item.ts"

/** Delivers a network's rows to one sink, one after another, in `seq` order. */
export interface SinkWorker {
  /** Hands rows over in `seq` order; waits while the queue is full: this is the back-pressure of a slow sink. */
  readonly enqueue: (items: ReadonlyArray<WorkItem>) => Effect.Effect<void>
  /** How many rows may be minted offered, because the worker would begin with them at once: 0 unless it is idle. */
  readonly room: () => number
  /** Works until interrupted; after `end`, until its rows are done or an attempt fails. */
  readonly run: Effect.Effect<void, StorageError | NotOwner>
  /** No row follows. */
  readonly end: Effect.Effect<void>
}

/** The most rows that are marked offered in one commit before their attempts. */
const CHUNK = 64

/** Rows that wait in memory; beyond it the processor waits. */
const CAPACITY = 1024

const toSinkEvent = (row: DeliveryRow): { readonly event: SinkEvent; readonly body: string } => {
  const { kind, matchId, monitor, network, payload } = row
  if (kind === "retracted") return { event: { type: "retracted", match_id: matchId }, body: retractedBody(matchId) }
  const event = row.event ?? (JSON.parse(payload) as Match).event
  return { event: { type: "match", id: matchId, monitor, network, event }, body: matchBody(payload) }
}

const nameOf = ({ kind }: DeliveryRow): string => (kind === "match" ? "delivery" : "retraction")

/** A delivery that got no attempt, because those before it had shown that there is nobody to hear it. */
const SINK_DOWN: DeliveryResult = { _tag: "Dead", attempts: 0, reason: "transient: sink down", judged: false }

export const makeSinkWorker = Effect.fnUntraced(function* (options: {
  readonly sink: string
  readonly handle: SinkHandle
  readonly storage: Storage["Service"]
  readonly owner: Owner
  readonly lease: HeldLease
  readonly metrics: NetworkMetrics
  readonly status: PipelineStatus
  readonly settler: Settler
  readonly draining: Draining
  readonly policy: AttemptPolicy
}): Effect.fn.Return<SinkWorker> {
  const { sink, handle, storage, owner, lease, metrics, status, settler, draining, policy } = options
  const queue = yield* Queue.bounded<WorkItem, Cause.Done>(CAPACITY)
  let busy = false

  const annotate = (row: DeliveryRow) => Effect.annotateLogs({ sink, monitor: row.monitor, match: row.matchId })

  const onRetry = (row: DeliveryRow, retry: Retry) => (reason: string, attempt: number) => {
    status.sinks.set(sink, reason)
    metrics.count("failedAttempts", 1, { sink })
    return Effect.logWarning(`${nameOf(row)} failed (attempt ${attempt} of ${retry.maxAttempts}): ${reason}`).pipe(
      annotate(row),
    )
  }

  const deliverRow = (row: DeliveryRow, runtime: SinkRuntime): Effect.Effect<DeliveryResult> =>
    Effect.suspend(() => {
      const retry = policy.next(runtime)
      if (retry === null) return Effect.succeed(SINK_DOWN)
      const { event, body } = toSinkEvent(row)
      const delivery = { id: deliveryId(row.matchId, row.life, row.kind), body, nonce: null }
      return deliverWithRetry(runtime.sink, event, delivery, { retry, lease, draining, onRetry: onRetry(row, retry) })
    })

  const tell = (row: DeliveryRow, result: DeliveryResult & { readonly _tag: "Dead" }) =>
    Effect.logError(
      `${nameOf(row)} is dead after ${result.attempts} attempts, kept as a dead letter: ${result.reason}`,
    ).pipe(annotate(row))

  /** Delivers `items` from `position` on; a change of the sink interrupts it, and it goes on from where it stood. */
  const deliverFrom = Effect.fnUntraced(function* (
    items: ReadonlyArray<WorkItem>,
    position: { next: number },
    runtime: SinkRuntime,
  ): Effect.fn.Return<"done" | "given-up"> {
    while (position.next < items.length) {
      const item = items[position.next]!
      const { row } = item
      if (draining.leaves(row.cursor)) {
        position.next++
        continue
      }
      const result = yield* deliverRow(row, runtime)
      policy.ended(result)
      if (result._tag === "GivenUp") return "given-up"
      const more = position.next + 1 < items.length || Queue.sizeUnsafe(queue) > 0
      // The rows behind a delivery that used up its retries wait for the same sink.
      if (result._tag === "Dead" && !result.judged && more) status.sinks.set(sink, result.reason)
      else status.sinks.delete(sink)
      if (result._tag === "Dead" && result !== SINK_DOWN) yield* tell(row, result)
      const outcome = {
        seq: row.seq,
        state: result._tag === "Dead" ? ("dead" as const) : ("delivered" as const),
        attempts: row.attempts + result.attempts,
        reason: result._tag === "Dead" ? result.reason : null,
      }
      // Handing over and moving on are one step that nothing interrupts: a change of the sink in between would leave the
      // row without an outcome, or complete its slot twice.
      const moveOn = () => {
        position.next++
      }
      if (settler.trySettle(item, outcome)) moveOn()
      else yield* Effect.uninterruptible(Effect.andThen(settler.settle(item, outcome), Effect.sync(moveOn)))
    }
    return "done"
  })

  /** Answers whether the worker goes on: not after it gave up because the pipeline drains. */
  const workChunk = Effect.fnUntraced(function* (items: ReadonlyArray<WorkItem>) {
    busy = true
    const offered = items
      .filter(({ row }) => row.state === "pending" && !draining.leaves(row.cursor))
      .map(({ row }) => row.seq)
    if (offered.length > 0) yield* storage.settle(owner, { outcomes: [], offered }).pipe(untilStored(status))
    const position = { next: 0 }
    while (position.next < items.length) {
      const { runtime, changed } = handle
      if (runtime === null) {
        status.sinks.set(sink, handle.error ?? "it is being built")
        const end = yield* Effect.raceFirst(
          Effect.as(changed, "changed" as const),
          Effect.as(draining.begun, "drained" as const),
        )
        status.sinks.delete(sink)
        if (end === "drained") return false
        continue
      }
      const end = yield* Effect.raceFirst(deliverFrom(items, position, runtime), Effect.as(changed, "changed" as const))
      if (end === "given-up") return false
    }
    busy = false
    return true
  })

  return {
    enqueue: (items) => Effect.asVoid(Queue.offerAll(queue, items)),
    room: () => (busy || Queue.sizeUnsafe(queue) > 0 ? 0 : CAPACITY),
    run: Queue.takeBetween(queue, 1, CHUNK).pipe(
      Effect.flatMap(workChunk),
      Effect.repeat({ while: (goesOn) => goesOn }),
      Effect.asVoid,
      Effect.catchTag("Done", () => Effect.void),
      Effect.ensuring(Effect.sync(() => status.sinks.delete(sink))),
    ),
    end: Effect.asVoid(Queue.end(queue)),
  }
})
