import { Actions, EventStore } from "blockwatcher"
import { Effect } from "effect"
import { Account, Entry } from "./tables/entities.ts"

/** The token has 6 decimals. */
const UNIT = 1_000_000n

const shown = (amount: bigint): string => {
  const digits = amount < 0n ? -amount : amount
  return `${amount < 0n ? "-" : ""}${(digits / UNIT).toLocaleString("en")}.${`${digits % UNIT}`.padStart(6, "0")}`
}

/** What everybody has, in one line. */
export const statement = Effect.gen(function* () {
  const { orm } = yield* EventStore
  const { counts } = yield* Actions
  const em = orm.em.fork()
  const accounts = yield* Effect.tryPromise(() => em.findAll(Account, { orderBy: { customer: "asc" } }))
  const reversals = yield* Effect.tryPromise(() => em.count(Entry, { id: { $like: "%-r" } }))
  const letters = yield* Effect.tryPromise(() => em.count(Entry, { letter: { $ne: null } }))
  const states = yield* counts
  const inState = (...wanted: ReadonlyArray<string>) =>
    states.filter(({ state }) => wanted.includes(state)).reduce((sum, { deliveries }) => sum + deliveries, 0)
  return [
    ...accounts.map(({ customer, balance }) => `${customer} ${shown(balance)}`),
    `${reversals} taken back`,
    `${letters} letters`,
    `${inState("waiting", "running")} to do`,
    `${inState("parked", "failed")} to look at`,
  ].join(" | ")
})
