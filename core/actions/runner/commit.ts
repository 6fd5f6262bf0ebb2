import { Clock, Effect, Schedule } from "effect"
import { checkHeld, giveBack, succeed } from "../store/deliveries.ts"
import type { StoreFailed } from "../store/error.ts"
import { writeEvents } from "../store/outbox.ts"
import { endNumber, holdNumber, recordHandled } from "../store/records.ts"
import type { Session } from "../store/session.ts"
import type { Store } from "../store/store.ts"
import type { Executed } from "./execute.ts"
import type { Job } from "./job.ts"

const untilTaken = Schedule.min([Schedule.exponential("20 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.upTo({ duration: "50 seconds" }),
)

/** Changes the row of a delivery that is held; tried again while the database does not take it, as long as its lease is. */
export const settleDelivery = (
  { store }: Job,
  operation: string,
  work: (session: Session) => Promise<void>,
): Effect.Effect<void, StoreFailed> =>
  store
    .write(operation, work)
    .pipe(Effect.retry({ while: ({ failure }) => failure !== "refused", schedule: untilTaken }))

/**
 * The last transaction of a run: what the action wrote and emitted, that the delivery was handled, and its end. It is
 * taken back when a later run has begun, when the delivery is not held any more, or when something else changed what the
 * action rests on.
 */
export const commitRun = Effect.fnUntraced(function* (
  job: Job,
  written: Store,
  { staging, emitted }: Pick<Executed, "staging" | "emitted">,
): Effect.fn.Return<void, StoreFailed> {
  const { store, held, run, claimed } = job
  const now = yield* Clock.currentTimeMillis
  if (store !== written) yield* store.read("check a lease", (session) => checkHeld(session, held, now))
  yield* written.write("commit a run", async (session) => {
    // With the end of a delivery that is about no match there are no later runs.
    if (store === written && claimed.matchId === null) await endNumber(session, run)
    else await holdNumber(session, written.database, run)
    if (store === written) await succeed(session, held, now)
    const changed = await staging.flush(session)
    await writeEvents(session, emitted, now)
    if (changed || emitted.length > 0) await recordHandled(session, run.key, now)
  })
  if (store !== written) yield* settleDelivery(job, "end a delivery", (session) => succeed(session, held, now))
})

/** Lets others have a delivery, as if it had not been claimed. */
export const release = Effect.fnUntraced(function* (job: Job): Effect.fn.Return<void, StoreFailed> {
  const now = yield* Clock.currentTimeMillis
  yield* settleDelivery(job, "give a delivery back", (session) => giveBack(session, job.held, now))
})
