import { type Cause, Clock, Effect, Queue } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Outcome, Owner, Storage } from "../storage/storage.ts"
import type { NetworkMetrics } from "./metrics.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"
import type { Slot } from "./tracker.ts"
import type { WorkItem } from "./work-item.ts"

interface Settlement {
  readonly item: WorkItem
  readonly outcome: Outcome
}

/** Writes the outcomes of all workers of a network in groups, and only then completes their slots. */
export interface Settler {
  /** Hands an outcome over at once; false while too many are not written yet. */
  readonly trySettle: (item: WorkItem, outcome: Outcome) => boolean
  /** Hands an outcome over; waits while too many are not written yet. */
  readonly settle: (item: WorkItem, outcome: Outcome) => Effect.Effect<void>
  /** Writes until interrupted, or until everything is written after `end`. */
  readonly run: Effect.Effect<void, StorageError | NotOwner>
  /** No outcome follows: `run` ends when what was handed over is written. */
  readonly end: Effect.Effect<void>
}

/** The most outcomes in one transaction; keeps it to a few ms. */
const GROUP = 256

export const makeSettler = Effect.fnUntraced(function* (options: {
  readonly storage: Storage["Service"]
  readonly owner: Owner
  readonly status: PipelineStatus
  readonly metrics: NetworkMetrics
  /** Told of each group that is written, with the slots that waited for it. */
  readonly onWritten: (slots: ReadonlyArray<Slot>) => void
}): Effect.fn.Return<Settler> {
  const { storage, owner, status, metrics, onWritten } = options
  const queue = yield* Queue.bounded<Settlement, Cause.Done>(2 * GROUP)
  const writeGroup = Effect.fnUntraced(function* (group: ReadonlyArray<Settlement>) {
    const outcomes = group.map((settlement) => settlement.outcome)
    yield* storage.settle(owner, { outcomes, offered: [] }).pipe(untilStored(status))
    metrics.settled(group, yield* Clock.currentTimeMillis)
    onWritten(group.flatMap(({ item: { slot } }) => (slot === null ? [] : [slot])))
  })
  /** Outcomes that follow each other without a wait go into one write. */
  const gather = Effect.gen(function* () {
    const group = yield* Queue.takeBetween(queue, 1, GROUP)
    while (group.length < GROUP) {
      yield* Effect.yieldNow
      if (Queue.sizeUnsafe(queue) === 0) break
      group.push(...(yield* Queue.takeBetween(queue, 1, GROUP - group.length)))
    }
    return group
  })
  return {
    trySettle: (item, outcome) => Queue.offerUnsafe(queue, { item, outcome }),
    settle: (item, outcome) => Effect.asVoid(Queue.offer(queue, { item, outcome })),
    run: gather.pipe(
      Effect.flatMap(writeGroup),
      Effect.forever,
      Effect.catchTag("Done", () => Effect.void),
    ),
    end: Effect.asVoid(Queue.end(queue)),
  }
})
