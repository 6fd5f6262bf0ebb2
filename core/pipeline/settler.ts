import { type Cause, Effect, Queue } from "effect"
import type { NotOwner, Outcome, Owner, Storage, StorageError } from "../storage/storage.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"
import type { Slot } from "./tracker.ts"

interface Settlement {
  readonly outcome: Outcome
  readonly slot: Slot | null
}

/** Writes the outcomes of all workers of a network in groups, and only then completes their slots. */
export interface Settler {
  /** Hands an outcome over at once; false while too many are not written yet. */
  readonly trySettle: (outcome: Outcome, slot: Slot | null) => boolean
  /** Hands an outcome over; waits while too many are not written yet. */
  readonly settle: (outcome: Outcome, slot: Slot | null) => Effect.Effect<void>
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
  /** Told of each group that is written, with the slots that waited for it. */
  readonly onWritten: (slots: ReadonlyArray<Slot>) => void
}): Effect.fn.Return<Settler> {
  const { storage, owner, status, onWritten } = options
  const queue = yield* Queue.bounded<Settlement, Cause.Done>(2 * GROUP)
  const writeGroup = Effect.fnUntraced(function* (group: ReadonlyArray<Settlement>) {
    const outcomes = group.map((settlement) => settlement.outcome)
    yield* storage.settle(owner, { outcomes, offered: [] }).pipe(untilStored(status))
    onWritten(group.flatMap(({ slot }) => (slot === null ? [] : [slot])))
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
    trySettle: (outcome, slot) => Queue.offerUnsafe(queue, { outcome, slot }),
    settle: (outcome, slot) => Effect.asVoid(Queue.offer(queue, { outcome, slot })),
    run: gather.pipe(
      Effect.flatMap(writeGroup),
      Effect.forever,
      Effect.catchTag("Done", () => Effect.void),
    ),
    end: Effect.asVoid(Queue.end(queue)),
  }
})
