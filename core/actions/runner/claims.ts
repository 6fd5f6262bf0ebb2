import { Clock, Effect } from "effect"
import { deliveryKey } from "../keys.ts"
import { type Claim, claim, type Claimed, takeNumbers } from "../store/claim.ts"
import type { StoreFailed } from "../store/error.ts"
import { readRecords } from "../store/records.ts"
import type { Session } from "../store/session.ts"
import { RUNTIME, type Store } from "../store/store.ts"
import type { Job } from "./job.ts"

/**
 * Claims deliveries of a store, takes the next number of each run, and reads what is recorded of them: in one transaction,
 * or two where actions write another store.
 */
export const claimJobs = Effect.fnUntraced(function* (
  store: Store,
  written: Store,
  terms: Omit<Claim, "now">,
): Effect.fn.Return<ReadonlyArray<Job>, StoreFailed> {
  const now = yield* Clock.currentTimeMillis
  const number = async (session: Session, all: ReadonlyArray<Claimed>): Promise<ReadonlyArray<Job>> => {
    const runs = all.map((claimed) => {
      const key = deliveryKey(store.name, claimed)
      return { claimed, key, subject: claimed.matchId ?? key }
    })
    const numbers = await takeNumbers(
      session,
      runs.map(({ subject }) => subject),
    )
    const records = await readRecords(
      session,
      runs.map(({ key }) => key),
    )
    return runs.map(({ claimed, key, subject }) => ({
      store,
      claimed,
      held: { pk: claimed.pk, holder: terms.holder },
      run: { key, subject, number: numbers.get(subject)! },
      handled: records.handled.has(key),
      calls: records.calls.get(key) ?? [],
    }))
  }
  const take = (session: Session) => claim(session, store.name === RUNTIME, { ...terms, now })
  if (store === written) {
    return yield* store.writeBeside("claim deliveries", async (session) => {
      const claimed = await take(session)
      return claimed.length === 0 ? [] : number(session, claimed)
    })
  }
  const claimed = yield* store.writeBeside("claim deliveries", take)
  if (claimed.length === 0) return []
  return yield* written.writeBeside("number runs", (session) => number(session, claimed))
})
