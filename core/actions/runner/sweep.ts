import { Clock, Effect } from "effect"
import { deliveryKey } from "../keys.ts"
import type { StoreFailed } from "../store/error.ts"
import type { Store } from "../store/store.ts"
import { forget, type Over, readOldEvents, readSucceeded, removeEvents } from "../store/sweep.ts"

/** Rows that one step may touch, which keeps it to a few ms. */
const STEP = 200

/**
 * Removes from a store what is over for longer than the retention. What was recorded of a delivery that has succeeded goes
 * earlier, after half of it: an event of a match is removed with the journal of its network, and what the records would be
 * found by goes with it.
 */
export const makeSweep = (store: Store, written: Store, retentionMs: number): Effect.Effect<void, StoreFailed> => {
  let seen = 0

  const forgetRecords = (over: ReadonlyArray<Over>) => {
    if (over.length === 0) return Effect.void
    const keys = over.map((one) => deliveryKey(store.name, one))
    const subjects = over.map(({ matchId }, i) => matchId ?? keys[i]!)
    return written.write("forget what is over", (session) => forget(session, keys, subjects))
  }

  const forgetSucceeded: Effect.Effect<void, StoreFailed> = Effect.gen(function* () {
    const before = (yield* Clock.currentTimeMillis) - retentionMs / 2
    const { over, last, more } = yield* store.read("read what is over", (session) =>
      readSucceeded(session, seen, before, STEP),
    )
    yield* forgetRecords(over)
    seen = last
    if (more) yield* Effect.andThen(Effect.yieldNow, forgetSucceeded)
  })

  const removeOld: Effect.Effect<void, StoreFailed> = Effect.gen(function* () {
    const before = (yield* Clock.currentTimeMillis) - retentionMs
    const { seqs, over } = yield* store.read("read old events", (session) => readOldEvents(session, before, STEP))
    if (seqs.length === 0) return
    yield* forgetRecords(over)
    yield* store.write("remove events", (session) => removeEvents(session, seqs))
    if (seqs.length === STEP) yield* Effect.andThen(Effect.yieldNow, removeOld)
  })

  return Effect.andThen(forgetSucceeded, removeOld)
}
