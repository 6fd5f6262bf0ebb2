import { Clock, Effect, Schedule } from "effect"
import { checkHeld, giveBack, holdDeliveries, Lost, succeed, succeedAll } from "../store/deliveries.ts"
import type { StoreFailed } from "../store/error.ts"
import { writeEvents } from "../store/outbox.ts"
import { AlreadyHandled, endNumbers, holdNumbers, Overtaken, readHandled, recordHandled } from "../store/records.ts"
import type { Session } from "../store/session.ts"
import type { Store } from "../store/store.ts"
import type { Kind } from "../store/transactions.ts"
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

/** A run that ended well, to be committed. */
interface Ending extends Pick<Executed, "staging" | "emitted"> {
  readonly job: Job
  /** Whether the delivery stands in the store that is written. */
  readonly own: boolean
  readonly now: number
  /** Whether the run left anything. */
  wrote: boolean
}

const pksOf = (endings: ReadonlyArray<Ending>): ReadonlyArray<number> =>
  endings.filter(({ own }) => own).map(({ job }) => job.held.pk)

/**
 * What the last transaction of a run does: what the action wrote and emitted, that the delivery was handled, and its end.
 * The run writes nothing when a later one has begun, when the delivery is not held any more, or was handled before.
 */
const endings: Kind<Ending> = {
  operation: "commit a run",
  check: async (session, all) => {
    const numbers = await holdNumbers(
      session,
      all.map(({ job }) => job.run.subject),
    )
    const pks = pksOf(all)
    const held = pks.length === 0 ? new Set() : await holdDeliveries(session, all[0]!.job.held.holder, pks)
    const handled = await readHandled(
      session,
      all.map(({ job }) => job.run.key),
    )
    const refused = new Map<Ending, Error>()
    for (const ending of all) {
      const { run, held: delivery } = ending.job
      if (numbers.get(run.subject) !== run.number) refused.set(ending, new Overtaken())
      else if (ending.own && !held.has(delivery.pk)) refused.set(ending, new Lost())
      else if (handled.has(run.key)) refused.set(ending, new AlreadyHandled())
    }
    return refused
  },
  each: async (session, ending) => {
    const { staging, emitted, now } = ending
    const changed = await staging.flush(session)
    await writeEvents(session, emitted, now)
    ending.wrote = changed || emitted.length > 0
  },
  finish: async (session, all) => {
    const { now, job } = all[0]!
    // With the end of a delivery that is about no match there are no later runs.
    const over = all.filter(({ own, job }) => own && job.claimed.matchId === null).map(({ job }) => job.run.subject)
    if (over.length > 0) await endNumbers(session, over)
    const pks = pksOf(all)
    if (pks.length > 0) await succeedAll(session, job.held.holder, pks, now)
    const keys = all.filter(({ wrote }) => wrote).map(({ job }) => job.run.key)
    if (keys.length > 0) await recordHandled(session, keys, now)
  },
}

/** Commits a run, together with others that have ended by then. */
export const commitRun = Effect.fnUntraced(function* (
  job: Job,
  written: Store,
  { staging, emitted }: Pick<Executed, "staging" | "emitted">,
): Effect.fn.Return<void, StoreFailed> {
  const { store, held } = job
  const now = yield* Clock.currentTimeMillis
  const own = store === written
  if (!own) yield* store.read("check a lease", (session) => checkHeld(session, held, now))
  yield* written.writeOf(endings, { job, own, staging, emitted, now, wrote: false })
  if (!own) yield* settleDelivery(job, "end a delivery", (session) => succeed(session, held, now))
})

/** Lets others have a delivery, as if it had not been claimed. */
export const release = Effect.fnUntraced(function* (job: Job): Effect.fn.Return<void, StoreFailed> {
  const now = yield* Clock.currentTimeMillis
  yield* settleDelivery(job, "give a delivery back", (session) => giveBack(session, job.held, now))
})
