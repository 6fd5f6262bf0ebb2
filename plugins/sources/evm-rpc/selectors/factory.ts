import { Schema } from "effect"
import { keccak256, stringToHex } from "viem"
import { type Problem, under } from "../../../../core/model/problem.ts"
import { Addresses, readAddresses } from "./addresses.ts"
import { ArgumentFilter } from "./arguments.ts"
import { readItems } from "./items.ts"
import { readEvent, type WatchedEvent } from "./log-event.ts"

const expectedStart = { message: "expected the number of a block" }

/**
 * A contract that makes others and tells their addresses in an event. `start` is the block from which on it has done so,
 * the network's first unless told.
 */
export const Factory = Schema.Struct({
  address: Addresses,
  event: Schema.String,
  param: Schema.String,
  args: Schema.optionalKey(ArgumentFilter),
  start: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, expectedStart)),
  ),
})
export type Factory = typeof Factory.Type

/** Contracts: by their addresses, or those that a factory made. */
export const Contracts = Schema.Union([Schema.String, Schema.Array(Schema.String), Schema.Struct({ factory: Factory })])
export type Contracts = typeof Contracts.Type

/** A factory that was understood. */
export interface WatchedFactory {
  /** The same for all selectors that name the same contracts. */
  readonly key: string
  readonly addresses: ReadonlyArray<string>
  readonly event: WatchedEvent
  /** The argument that is the address of what was made. */
  readonly param: string
  readonly start: number | null
}

const keyOf = ({ addresses, event, param, start }: Omit<WatchedFactory, "key">): string => {
  const parts = [
    addresses.toSorted(),
    event.signature,
    event.parameters.map(({ indexed }) => indexed),
    event.filter.map((values) => values?.toSorted() ?? null),
    event.parameters.findIndex(({ name }) => name === param),
    start,
  ]
  return `factory ${keccak256(stringToHex(JSON.stringify(parts)))}`
}

/** Understands a factory, or adds everything that is wrong with it to `problems`. */
export const readFactory = (path: string, factory: Factory, problems: Array<Problem>): WatchedFactory | null => {
  const { param, args = {}, start = null } = factory
  const wrong: Array<Problem> = []
  const addresses = readAddresses("address", factory.address, wrong) ?? []
  const [item] = readItems("event", { signatures: factory.event, abi: undefined }, wrong)
  const event = item === undefined ? null : readEvent(item, args, wrong)
  if (event !== null) {
    if (event.topic0 === null)
      wrong.push({
        path: "event",
        message: `${event.name} is anonymous: nothing in a log says that it is of this event`,
      })
    const type = event.parameters.find(({ name }) => name === param)?.type
    const named = event.parameters.flatMap((parameter) => (parameter.type === "address" ? [parameter.name] : []))
    const those = `its arguments of type address are ${named.join(", ") || "none"}`
    if (type === undefined) wrong.push({ path: "param", message: `${event.name} has no argument '${param}'; ${those}` })
    else if (type !== "address")
      wrong.push({ path: "param", message: `'${param}' is of type ${type} and no address; ${those}` })
  }
  problems.push(...under(path, wrong))
  if (event === null || wrong.length > 0) return null
  const read = { addresses, event, param, start }
  return { key: keyOf(read), ...read }
}

/** Contracts that were understood. */
export interface WatchedContracts {
  /** Canonical addresses, or null for any; none where there is a factory. */
  readonly addresses: ReadonlyArray<string> | null
  /** What made the contracts that are watched. */
  readonly factory: WatchedFactory | null
}

/** Whether the contracts are those that a factory made. */
export const areMade = (address: Contracts | undefined): address is Extract<Contracts, { readonly factory: Factory }> =>
  typeof address === "object" && "factory" in address

/** Understands the contracts of a selector's `address`, or adds everything that is wrong with it to `problems`. */
export const readContracts = (address: Contracts | undefined, problems: Array<Problem>): WatchedContracts =>
  areMade(address)
    ? { addresses: [], factory: readFactory("address.factory", address.factory, problems) }
    : { addresses: readAddresses("address", address, problems), factory: null }
