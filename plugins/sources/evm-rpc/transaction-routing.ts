import { formName } from "./abi.ts"
import { compileArguments, type DecodeArguments } from "./decode.ts"
import { type Births, type Children, isBornBy } from "./factories.ts"
import type { Route } from "./log-bucket.ts"
import type { WatchedCalls } from "./selectors/call.ts"
import type { WatchedTransactions } from "./selectors/transaction.ts"
import { SELECTOR_LENGTH, type Transaction } from "./transactions.ts"

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

/** An interest in calls, with the children of its factory if it has one. */
export interface InterestInCalls {
  readonly id: string
  readonly watched: WatchedCalls
  readonly children: Children | null
}

const NO_BIRTHS: Births = new Map()

const addTo = <Key>(lists: Map<Key, Array<ListedCall>>, key: Key, call: ListedCall): void => {
  const here = lists.get(key)
  if (here === undefined) lists.set(key, [call])
  else here.push(call)
}

/** All interests in calls of one function, by the contract that is called. */
class CallBucket {
  readonly #anywhere: Array<ListedCall> = []
  readonly #at = new Map<string, Array<ListedCall>>()
  readonly #ofFactory = new Map<Children, Array<ListedCall>>()
  #births: Births = NO_BIRTHS

  add({ watched: { addresses }, children }: InterestInCalls, call: ListedCall): void {
    if (children !== null) {
      addTo(this.#ofFactory, children, call)
      this.#births = children.births
    } else if (addresses === null) this.#anywhere.push(call)
    else for (const address of addresses) addTo(this.#at, address, call)
  }

  get hasFactories(): boolean {
    return this.#births !== NO_BIRTHS
  }

  /** Those that a call in transaction `index` of a block concerns. */
  listed(to: string, block: number, index: number): ReadonlyArray<ListedCall> {
    const here = this.#at.get(to)
    const births = this.#births.get(to)
    if (births === undefined) return here === undefined ? this.#anywhere : [...this.#anywhere, ...here]
    const made = births.flatMap((birth) => (isBornBy(birth, block, index) ? (this.#ofFactory.get(birth.by) ?? []) : []))
    return [...this.#anywhere, ...(here ?? []), ...made]
  }
}

interface ListedTransactions extends WatchedTransactions {
  readonly id: string
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

/** Interests in the transactions of one sender, or of any, by the receiver. Added with the least values first. */
class ByReceiver {
  readonly #anyone: Array<ListedTransactions> = []
  /** Null for the creation of a contract, which has no receiver. */
  readonly #to = new Map<string | null, Array<ListedTransactions>>()

  add(listed: ListedTransactions): void {
    const { to, creation } = listed
    const receivers = to ?? (creation === true ? [null] : null)
    if (receivers === null) this.#anyone.push(listed)
    for (const receiver of receivers ?? []) {
      const here = this.#to.get(receiver)
      if (here === undefined) this.#to.set(receiver, [listed])
      else here.push(listed)
    }
  }

  collect({ to, value }: Transaction, interests: Array<string>): void {
    const amount = value ?? 0n
    for (const list of [this.#anyone, this.#to.get(to) ?? []])
      for (const { id, creation, minValue } of list) {
        if (minValue > amount) break
        if (creation === null || creation === (to === null)) interests.push(id)
      }
  }
}

const NO_CALLS: ReadonlyArray<Route<CallShape>> = []

/** The interests in transactions of one version; a transaction finds those that it concerns by its sender and receiver. */
export class TransactionRouting {
  readonly isEmpty: boolean
  /** Whether some want the calls of what a factory makes. */
  readonly hasFactories: boolean
  readonly #calls = new Map<string, CallBucket>()
  readonly #from = new Map<string, ByReceiver>()
  readonly #fromAnyone = new ByReceiver()

  constructor(
    calls: ReadonlyArray<InterestInCalls>,
    transactions: ReadonlyArray<{ readonly id: string; readonly watched: WatchedTransactions }>,
  ) {
    this.isEmpty = calls.length + transactions.length === 0
    const shapes = new Map<string, CallShape>()
    for (const interest of calls)
      for (const { name, signature, parameters, selector4 } of interest.watched.functions) {
        const key = formName(signature, parameters)
        let shape = shapes.get(key)
        if (shape === undefined) {
          shape = { name, signature, decode: compileArguments({ signature, parameters, firstTopic: 0 }) }
          shapes.set(key, shape)
        }
        let bucket = this.#calls.get(selector4)
        if (bucket === undefined) this.#calls.set(selector4, (bucket = new CallBucket()))
        bucket.add(interest, { id: interest.id, shape })
      }
    this.hasFactories = [...this.#calls.values()].some((bucket) => bucket.hasFactories)
    const byValue = transactions.toSorted(({ watched: a }, { watched: b }) => compare(a.minValue, b.minValue))
    for (const { id, watched } of byValue) {
      const listed = { ...watched, id }
      if (watched.from === null) this.#fromAnyone.add(listed)
      for (const sender of watched.from ?? []) {
        let here = this.#from.get(sender)
        if (here === undefined) this.#from.set(sender, (here = new ByReceiver()))
        here.add(listed)
      }
    }
  }

  /** Whom a transaction of a block concerns; null for nobody. `block` is left out for one that is in none yet. */
  routes(transaction: Transaction, block = Number.POSITIVE_INFINITY): TransactionRoutes | null {
    const interests = this.#interests(transaction)
    const calls = this.#callRoutes(transaction, block)
    return interests.length + calls.length === 0 ? null : { interests, calls }
  }

  #interests(transaction: Transaction): ReadonlyArray<string> {
    const interests: Array<string> = []
    this.#fromAnyone.collect(transaction, interests)
    if (transaction.from !== null) this.#from.get(transaction.from)?.collect(transaction, interests)
    return interests
  }

  /** Whether it is a call that concerns someone if a factory turns out to have made what it calls. */
  mayConcern({ to, input }: Transaction): boolean {
    return this.hasFactories && to !== null && this.#bucketOf(input)?.hasFactories === true
  }

  #bucketOf(input: string): CallBucket | undefined {
    return input.length < SELECTOR_LENGTH ? undefined : this.#calls.get(input.slice(0, SELECTOR_LENGTH).toLowerCase())
  }

  #callRoutes({ to, input, index }: Transaction, block: number): ReadonlyArray<Route<CallShape>> {
    const bucket = to === null ? undefined : this.#bucketOf(input)
    if (bucket === undefined) return NO_CALLS
    const listed = bucket.listed(to!, block, index)
    if (listed.length === 0) return NO_CALLS
    return [...Map.groupBy(listed, ({ shape }) => shape)].map(([shape, members]) => ({
      shape,
      interests: members.map(({ id }) => id),
    }))
  }
}
