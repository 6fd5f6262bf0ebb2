import { Clock, Effect } from "effect"
import type { Storage } from "../storage/storage.ts"

/** What a network owes a sink, as of the last count. */
export interface Debt {
  readonly sink: string
  readonly deliveries: number
  /** When the oldest was written, in ms since 1970. */
  readonly since: number
}

/** Rows of one step of a count, which keeps it to a few ms. */
const STEP = 10_000

/** Between two counts, in ms; after a count that takes long, so many times longer than it took. */
const EVERY = { ms: 5_000, times: 20 }

const countOf = Effect.fnUntraced(function* (storage: Storage["Service"], network: string, sink: string) {
  let deliveries = 0
  let afterSeq = 0
  while (true) {
    const { rows, lastSeq } = yield* storage.countOwed(network, sink, { afterSeq, limit: STEP })
    deliveries += rows
    if (rows < STEP) return deliveries
    afterSeq = lastSeq
    yield* Effect.yieldNow
  }
})

/**
 * Counts from time to time what a network owes each sink, beside its pipeline: whoever asks for the counts reads what was
 * counted last, however many rows there are.
 */
export const watchDebts = (
  storage: Storage["Service"],
  network: string,
  onCounted: (debts: ReadonlyArray<Debt>) => void,
): Effect.Effect<void> => {
  let took = 0
  const countAll = Effect.gen(function* () {
    const startedAt = yield* Clock.currentTimeMillis
    const debts: Array<Debt> = []
    for (const sink of yield* storage.owedSinks(network)) {
      const since = yield* storage.oldestOwed(network, sink)
      if (since !== null) debts.push({ sink, deliveries: yield* countOf(storage, network, sink), since })
    }
    onCounted(debts)
    took = (yield* Clock.currentTimeMillis) - startedAt
  })
  return Effect.suspend(() => Effect.sleep(Math.max(EVERY.ms, EVERY.times * took))).pipe(
    Effect.andThen(countAll),
    // The pipeline meets the same error and tells of it.
    Effect.catchTag("StorageError", () => Effect.void),
    Effect.catchDefect((defect) => Effect.logError("the count of what is owed broke; it is tried again", defect)),
    Effect.forever,
    Effect.ensuring(Effect.sync(() => onCounted([]))),
  )
}
