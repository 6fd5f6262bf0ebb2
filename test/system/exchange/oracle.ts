import { Effect } from "effect"
import type { Done } from "../../../examples/exchange/bank/book.ts"
import { CUSTOMERS } from "../../../examples/exchange/customers.ts"
import type { ChainView } from "../../../server/devnet/simulated/view.ts"
import type { Row, Rows } from "./rows.ts"

/** What each customer has, by what stands on the chain. */
export const balancesOn = (chain: ChainView): ReadonlyMap<string, bigint> => {
  const balances = new Map<string, bigint>()
  for (const { log } of chain.canonicalLogs(1)) {
    const customer = CUSTOMERS.get(`0x${log.topics[2]!.slice(-40)}`)
    if (customer !== undefined) balances.set(customer, (balances.get(customer) ?? 0n) + BigInt(log.data))
  }
  return balances
}

const DELIVERIES = `
  select d.action, d.state, d.code, e.id as event, e.payload from blockwatcher_action_deliveries d
  join blockwatcher_events e on e.seq = d.event_seq`

interface Parts {
  readonly balances: ReadonlyMap<string, bigint>
  readonly done: Done
  readonly accounts: ReadonlyArray<Row>
  readonly entries: ReadonlyArray<Row>
  readonly deposits: ReadonlyArray<Row>
  readonly deliveries: ReadonlyArray<Row>
  readonly intents: ReadonlyArray<Row>
}

const readParts = Effect.fnUntraced(function* (chain: ChainView, rows: Rows, bank: Effect.Effect<Done>) {
  return {
    balances: balancesOn(chain),
    done: yield* bank,
    accounts: yield* rows.query("select * from exchange_accounts"),
    entries: yield* rows.query("select * from exchange_entries"),
    deposits: yield* rows.query("select * from exchange_deposits"),
    deliveries: yield* rows.query(DELIVERIES),
    intents: yield* rows.query("select delivery from blockwatcher_provider_calls where state = 'intent'"),
  } satisfies Parts
})

const entryOf = ({ payload }: Row): string => (JSON.parse(payload as string) as { entry: string }).entry

const sums = (rows: ReadonlyArray<Row>): ReadonlyMap<string, bigint> => {
  const all = new Map<string, bigint>()
  for (const { customer, amount } of rows) {
    all.set(customer as string, (all.get(customer as string) ?? 0n) + BigInt(amount as string))
  }
  return all
}

const countBy = (rows: ReadonlyArray<object>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const row of rows as ReadonlyArray<Row>) {
    const reference = row["reference"] as string
    counts.set(reference, (counts.get(reference) ?? 0) + 1)
  }
  return counts
}

/** Where the sums of two differ; an account that is not there has nothing. */
const different = (
  what: string,
  there: ReadonlyMap<string, bigint>,
  right: ReadonlyMap<string, bigint>,
): ReadonlyArray<string> =>
  [...new Set([...there.keys(), ...right.keys()])].flatMap((customer) => {
    const [is, should] = [there.get(customer) ?? 0n, right.get(customer) ?? 0n]
    return is === should ? [] : [`${what} of ${customer} is ${is}, not ${should}`]
  })

/** Balances, entries and the bank's bookings against the chain. */
const moneyFaults = ({ balances, accounts, entries, deposits, done }: Parts): ReadonlyArray<string> => {
  const kept = new Map(accounts.map(({ customer, balance }) => [customer as string, BigInt(balance as string)]))
  const credited = deposits.filter(({ credited }) => Boolean(credited))
  return [
    ...different("the balance", kept, balances),
    ...different("the sum of the entries", sums(entries), balances),
    ...different("the sum of the credited deposits", sums(credited), balances),
    ...different("the sum of the bank's bookings", sums(done.bookings as unknown as ReadonlyArray<Row>), balances),
  ]
}

/** The bank booked each entry once, under one key, and nothing else. */
const bookingFaults = ({ entries, done }: Parts): ReadonlyArray<string> => {
  const booked = countBy(done.bookings)
  const receipts = new Map(done.bookings.map(({ reference, receipt }) => [reference, receipt]))
  const ids = new Set(entries.map(({ id }) => id as string))
  return [
    ...entries.flatMap(({ id, receipt }) => {
      const count = booked.get(id as string) ?? 0
      if (count !== 1) return [`entry ${id} was booked ${count} times`]
      return Number(receipt) === receipts.get(id as string)
        ? []
        : [`entry ${id} has the receipt ${receipt}, which is not its own`]
    }),
    ...[...booked.keys()]
      .filter((reference) => !ids.has(reference))
      .map((reference) => `${reference} was booked and is no entry`),
  ]
}

/** A letter was sent once for each credit, or at most once where its delivery is parked. */
const letterFaults = ({ entries, deliveries, done, intents }: Parts): ReadonlyArray<string> => {
  const sent = countBy(done.letters)
  const numbers = new Map(done.letters.map(({ reference, number }) => [reference, number]))
  const confirms = new Map(deliveries.filter(({ action }) => action === "confirm").map((row) => [entryOf(row), row]))
  const parked = [...confirms.values()].filter(({ state }) => state === "parked")
  return [
    ...entries.flatMap(({ id, amount, letter }) => {
      const count = sent.get(id as string) ?? 0
      const delivery = confirms.get(id as string)
      if (BigInt(amount as string) < 0n) {
        return count === 0 && delivery === undefined ? [] : [`reversal ${id} has a letter`]
      }
      if (delivery?.["state"] === "parked") {
        if (count > 1) return [`entry ${id} is parked, and ${count} letters were sent`]
        return letter === null ? [] : [`entry ${id} is parked, and has a letter`]
      }
      if (delivery?.["state"] !== "succeeded") return [`the letter of entry ${id} is ${delivery?.["state"]}`]
      if (count !== 1) return [`${count} letters were sent of entry ${id}`]
      return Number(letter) === numbers.get(id as string)
        ? []
        : [`entry ${id} has letter ${letter}, which is not its own`]
    }),
    ...parked.flatMap(({ code, event }) =>
      code === "outcome_unknown" ? [] : [`event ${event} is parked for ${code}`],
    ),
    ...(parked.length === intents.length ? [] : [`${intents.length} calls are unclear, and ${parked.length} parked`]),
  ]
}

/** Nothing waits, runs or failed, and nothing but a letter is parked. */
const deliveryFaults = ({ deliveries }: Parts): ReadonlyArray<string> =>
  deliveries.flatMap(({ action, state, code, event }) =>
    state === "succeeded" || (state === "parked" && action === "confirm")
      ? []
      : [`${action} of event ${event} is ${state}, ${code}`],
  )

/** Each life of a match has one event, and the credits and reversals of a deposit take turns. */
const entryFaults = ({ entries, deliveries }: Parts): ReadonlyArray<string> => {
  const emitted = deliveries.filter(({ action }) => action === "settle").map(entryOf)
  const ids = entries.map(({ id }) => id as string)
  const extra = emitted.filter((id, i) => emitted.indexOf(id) < i)
  return [
    ...extra.map((id) => `entry ${id} was told twice`),
    ...ids.filter((id) => !emitted.includes(id)).map((id) => `entry ${id} was told to nobody`),
    ...emitted.filter((id) => !ids.includes(id)).map((id) => `${id} was told and is no entry`),
    ...ids
      .filter((id) => id.endsWith("-r") && !ids.includes(id.slice(0, -2)))
      .map((id) => `entry ${id} takes back what was not credited`),
  ]
}

/** What an exchange went through. */
export interface Verdict {
  readonly faults: ReadonlyArray<string>
  readonly credits: number
  readonly reversals: number
  /** Requests for what was booked before. */
  readonly repeats: number
  readonly letters: number
  readonly parked: number
}

/** Everything that is wrong with an exchange that has settled, by what stands on the chain. */
export const judge = (chain: ChainView, rows: Rows, bank: Effect.Effect<Done>): Effect.Effect<Verdict> =>
  Effect.map(readParts(chain, rows, bank), (parts) => ({
    faults: [moneyFaults, bookingFaults, letterFaults, deliveryFaults, entryFaults].flatMap((find) => find(parts)),
    credits: parts.entries.filter(({ id }) => !(id as string).endsWith("-r")).length,
    reversals: parts.entries.filter(({ id }) => (id as string).endsWith("-r")).length,
    repeats: parts.done.bookings.reduce((sum, { asked }) => sum + asked - 1, 0),
    letters: parts.done.letters.length,
    parked: parts.intents.length,
  }))
