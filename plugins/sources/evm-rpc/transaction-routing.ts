import { formName } from "./abi.ts"
import { compileArguments, type DecodeArguments } from "./decode.ts"
import type { Route } from "./log-bucket.ts"
import type { WatchedCalls } from "./selectors/call.ts"
import type { WatchedTransactions } from "./selectors/transaction.ts"
import type { Transaction } from "./transactions.ts"

/** What every call of one function with the same argument names is read as. */
export interface CallShape {
  readonly name: string
  readonly signature: string
  readonly decode: DecodeArguments
}

/** The interests that a transaction concerns: as such, and as a call. */
export interface TransactionRoutes {
  readonly interests: ReadonlyArray<string>
  readonly calls: ReadonlyArray<Route<CallShape>>
}

interface ListedCall {
  readonly id: string
  readonly shape: CallShape
}

/** All interests in calls of one function, by the address that is called. */
class CallBucket {
  readonly anywhere: Array<ListedCall> = []
  readonly at = new Map<string, Array<ListedCall>>()

  add(addresses: ReadonlyArray<string> | null, call: ListedCall): void {
    if (addresses === null) this.anywhere.push(call)
    for (const address of addresses ?? []) {
      const here = this.at.get(address)
      if (here === undefined) this.at.set(address, [call])
      else here.push(call)
    }
  }
}

interface ListedTransactions extends WatchedTransactions {
  readonly id: string
  readonly toSet: ReadonlySet<string> | null
}

/** Characters of `0x` and four bytes. */
const SELECTOR = 10

const NO_CALLS: ReadonlyArray<Route<CallShape>> = []

/** The interests in transactions of one version; a transaction finds those that it concerns by its sender and receiver. */
export class TransactionRouting {
  readonly isEmpty: boolean
  readonly #calls = new Map<string, CallBucket>()
  readonly #from = new Map<string, Array<ListedTransactions>>()
  readonly #to = new Map<string, Array<ListedTransactions>>()
  /** Those that name no address, the least values first. */
  readonly #others: ReadonlyArray<ListedTransactions>

  constructor(
    calls: ReadonlyArray<{ readonly id: string; readonly watched: WatchedCalls }>,
    transactions: ReadonlyArray<{ readonly id: string; readonly watched: WatchedTransactions }>,
  ) {
    this.isEmpty = calls.length + transactions.length === 0
    const shapes = new Map<string, CallShape>()
    for (const { id, watched } of calls)
      for (const { name, signature, parameters, selector4 } of watched.functions) {
        const key = formName(signature, parameters)
        let shape = shapes.get(key)
        if (shape === undefined) {
          shape = { name, signature, decode: compileArguments({ signature, parameters, firstTopic: 0 }) }
          shapes.set(key, shape)
        }
        let bucket = this.#calls.get(selector4)
        if (bucket === undefined) this.#calls.set(selector4, (bucket = new CallBucket()))
        bucket.add(watched.addresses, { id, shape })
      }
    const others: Array<ListedTransactions> = []
    for (const { id, watched } of transactions) {
      const { from, to } = watched
      const listed = { ...watched, id, toSet: to === null ? null : new Set(to) }
      const [index, addresses] = from === null ? [this.#to, to] : [this.#from, from]
      if (addresses === null) others.push(listed)
      for (const address of addresses ?? []) {
        const here = index.get(address)
        if (here === undefined) index.set(address, [listed])
        else here.push(listed)
      }
    }
    this.#others = others.toSorted((a, b) => (a.minValue < b.minValue ? -1 : a.minValue > b.minValue ? 1 : 0))
  }

  /** Whom the transaction concerns; null for nobody. */
  routes(transaction: Transaction): TransactionRoutes | null {
    const interests = this.#interests(transaction)
    const calls = this.#callRoutes(transaction)
    return interests.length + calls.length === 0 ? null : { interests, calls }
  }

  #interests({ from, to, value }: Transaction): ReadonlyArray<string> {
    const amount = value ?? 0n
    const interests: Array<string> = []
    const take = (listed: ListedTransactions) => {
      if (listed.minValue > amount) return
      if (listed.toSet !== null && (to === null || !listed.toSet.has(to))) return
      if (listed.creation === null || listed.creation === (to === null)) interests.push(listed.id)
    }
    if (from !== null) this.#from.get(from)?.forEach(take)
    if (to !== null) this.#to.get(to)?.forEach(take)
    for (const listed of this.#others) {
      if (listed.minValue > amount) break
      take(listed)
    }
    return interests
  }

  #callRoutes({ to, input }: Transaction): ReadonlyArray<Route<CallShape>> {
    if (to === null || input.length < SELECTOR) return NO_CALLS
    const bucket = this.#calls.get(input.slice(0, SELECTOR).toLowerCase())
    if (bucket === undefined) return NO_CALLS
    const here = bucket.at.get(to)
    const listed = here === undefined ? bucket.anywhere : [...bucket.anywhere, ...here]
    if (listed.length === 0) return NO_CALLS
    return [...Map.groupBy(listed, ({ shape }) => shape)].map(([shape, members]) => ({
      shape,
      interests: members.map(({ id }) => id),
    }))
  }
}
