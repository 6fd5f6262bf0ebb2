import { type Cause, Clock, Effect, Latch, Queue } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Outcome, Owner, Storage } from "../storage/storage.ts"
import type { NetworkMetrics } from "./metrics.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"
import type { Slot } from "./tracker.ts"
import type { WorkItem } from "./work-item.ts"

/** How one row's delivery ended. */
export interface Settlement {
  readonly item: WorkItem
  readonly outcome: Outcome
}

/** Writes the outcomes of all workers of a network in groups, and only then completes their slots. */
export interface Settler {
  /**
   * Hands over the outcomes of what was delivered at once: they are written together, so that a restart never finds a part
   * of a digest. False while too many are not written yet, or when nothing is written any more.
   */
  readonly trySettle: (unit: ReadonlyArray<Settlement>) => boolean
  /** Completes when there may be room for more. */
  readonly room: Effect.Effect<void>
  /** Writes until interrupted, or until everything is written after `end`. */
  readonly run: Effect.Effect<void, StorageError | NotOwner>
  /** No outcome follows: `run` ends when what was handed over is written. */
  readonly end: Effect.Effect<void>
}

/** About as many outcomes go into one transaction, which keeps it to a few ms; a large digest takes longer. */
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
  const queue = yield* Queue.bounded<ReadonlyArray<Settlement>, Cause.Done>(2 * GROUP)
  const taken = Latch.makeUnsafe(true)
  const writeGroup = Effect.fnUntraced(function* (group: ReadonlyArray<Settlement>) {
    const outcomes = group.map((settlement) => settlement.outcome)
    yield* storage.settle(owner, { outcomes, offered: [] }).pipe(untilStored(status))
    metrics.settled(group, yield* Clock.currentTimeMillis)
    onWritten(group.flatMap(({ item: { slot } }) => (slot === null ? [] : [slot])))
  })
  /** Outcomes that follow each other without a wait go into one write. */
  const gather = Effect.gen(function* () {
    const group = [...(yield* Queue.take(queue))]
    while (group.length < GROUP) {
      if (Queue.sizeUnsafe(queue) === 0) {
        yield* Effect.yieldNow
        if (Queue.sizeUnsafe(queue) === 0) break
      }
      for (const settlement of yield* Queue.take(queue)) group.push(settlement)
    }
    taken.openUnsafe()
    return group
  })
  return {
    trySettle: (unit) => {
      if (Queue.offerUnsafe(queue, unit)) return true
      taken.closeUnsafe()
      return false
    },
    room: taken.await,
    run: gather.pipe(
      Effect.flatMap(writeGroup),
      Effect.forever,
      Effect.catchTag("Done", () => Effect.void),
    ),
    end: Effect.asVoid(Queue.end(queue)),
  }
})
