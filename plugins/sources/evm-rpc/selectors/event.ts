import { Schema } from "effect"
import { toEventSelector, toEventSignature } from "viem"
import type { Problem } from "../../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../../core/plugin/source.ts"
import { formName, type NamedParameter, recordOfAny } from "../abi.ts"
import { Addresses, readAddresses } from "./addresses.ts"
import { ArgumentFilter, topicOf } from "./arguments.ts"
import { blockFields, transactionFields } from "./fields.ts"
import { Abi, type Item, readItems, Signatures } from "./items.ts"

/**
 * Events of contracts: those of the signatures in `event` or of a whole `abi`, at the addresses or at any, whose indexed
 * arguments have the values in `args`.
 */
export const EventSelector = Schema.Struct({
  kind: Schema.Literal("event"),
  address: Schema.optionalKey(Addresses),
  event: Schema.optionalKey(Signatures),
  abi: Schema.optionalKey(Abi),
  args: Schema.optionalKey(ArgumentFilter),
})
export type EventSelector = typeof EventSelector.Type

/** One of the events that a selector looks for. */
export interface WatchedEvent {
  readonly name: string
  /** `Transfer(address,address,uint256)`. */
  readonly signature: string
  readonly parameters: ReadonlyArray<NamedParameter>
  /** Null for an anonymous event. */
  readonly topic0: string | null
  /** How many topics a log of it has. */
  readonly topics: number
  /** The values that each topic may have; null for any. */
  readonly filter: ReadonlyArray<ReadonlyArray<string> | null>
}

/** A selector that was understood. */
export interface WatchedEvents {
  readonly kind: "event"
  /** Canonical addresses, or null for any. */
  readonly addresses: ReadonlyArray<string> | null
  readonly events: ReadonlyArray<WatchedEvent>
}

/** A log has so many topics; the first is the signature's, unless the event is anonymous. */
const MAX_TOPICS = 4

const readFilter = (
  { path, parameters, abi }: Item<"event">,
  args: ArgumentFilter,
  problems: Array<Problem>,
): ReadonlyArray<ReadonlyArray<string> | null> => {
  const indexed = parameters.filter((parameter) => parameter.indexed)
  for (const name of Object.keys(args)) {
    if (indexed.some((parameter) => parameter.name === name)) continue
    const why = parameters.some((parameter) => parameter.name === name)
      ? `'${name}' is not indexed in ${abi.name}, so nodes cannot choose by it; compare args.${name} in the predicate`
      : `${abi.name} (${path}) has no argument '${name}'; its indexed ones are ${indexed.map((parameter) => parameter.name).join(", ") || "none"}`
    problems.push({ path: `args.${name}`, message: why })
  }
  return indexed.map((parameter) => {
    const wanted = Object.hasOwn(args, parameter.name) ? args[parameter.name] : undefined
    if (wanted === undefined) return null
    const values = Array.isArray(wanted) ? wanted : [wanted]
    if (values.length === 0)
      problems.push({
        path: `args.${parameter.name}`,
        message: "the list is empty; leave the key out to match any value",
      })
    const topics = new Set<string>()
    for (const [i, value] of values.entries()) {
      const read = topicOf(parameter, value)
      if ("topic" in read) topics.add(read.topic)
      else
        problems.push({
          path: Array.isArray(wanted) ? `args.${parameter.name}.${i}` : `args.${parameter.name}`,
          message: `${JSON.stringify(value)} is no ${parameter.type}: expected ${read.expected}`,
        })
    }
    return [...topics]
  })
}

const readEvent = (item: Item<"event">, args: ArgumentFilter, problems: Array<Problem>): WatchedEvent => {
  const { path, abi, parameters } = item
  const anonymous = "anonymous" in abi && abi.anonymous === true
  const indexed = parameters.filter((parameter) => parameter.indexed).length
  const most = anonymous ? MAX_TOPICS : MAX_TOPICS - 1
  if (indexed > most)
    problems.push({
      path,
      message: `${indexed} parameters are indexed; an ${anonymous ? "anonymous " : ""}event can have ${most}`,
    })
  const topic0 = anonymous ? null : toEventSelector(abi)
  const filter = readFilter(item, args, problems)
  return {
    name: abi.name,
    signature: toEventSignature(abi),
    parameters,
    topic0,
    topics: anonymous ? indexed : 1 + indexed,
    filter: topic0 === null ? filter : [[topic0], ...filter],
  }
}

/** The same event twice is one; two whose logs look alike are refused. */
const distinct = (
  items: ReadonlyArray<Item<"event">>,
  events: ReadonlyArray<WatchedEvent>,
  problems: Array<Problem>,
): ReadonlyArray<WatchedEvent> => {
  const byLook = new Map<string, WatchedEvent>()
  for (const [i, event] of events.entries()) {
    const look = `${event.topic0 ?? "anonymous"} ${event.topics}`
    const other = byLook.get(look)
    if (other === undefined) byLook.set(look, event)
    else if (formName(other.signature, other.parameters) !== formName(event.signature, event.parameters))
      problems.push({
        path: items[i]!.path,
        message:
          event.topic0 === null
            ? `its logs look like those of ${other.signature}: both are anonymous, with as many indexed arguments; watch them in two monitors`
            : `${event.signature} is listed before with other names or other indexed arguments; leave one out`,
      })
  }
  return [...byLook.values()]
}

/** Understands a selector, or tells everything that is wrong with it. */
export const readEvents = (selector: EventSelector): WatchedEvents | { readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const addresses = readAddresses("address", selector.address, problems)
  const items = readItems("event", { signatures: selector.event, abi: selector.abi }, problems)
  const read = items.map((item) => readEvent(item, selector.args ?? {}, problems))
  const events = distinct(items, read, problems)
  const anonymous = events.find(({ topic0 }) => topic0 === null)
  if (anonymous !== undefined && selector.address === undefined)
    problems.push({
      path: "address",
      message: `is missing: ${anonymous.name} is anonymous, and only the address of its contract tells its logs from others`,
    })
  return problems.length > 0 ? { problems } : { kind: "event", addresses, events }
}

/** The fields of a log that matches the selector, and those that identify it. */
export const describeEvents = ({ events }: WatchedEvents): SelectorDescription => ({
  fields: {
    kind: "record",
    fields: {
      kind: { kind: "string" },
      name: { kind: "string" },
      signature: { kind: "string" },
      address: { kind: "address" },
      args: recordOfAny(events),
      log: { kind: "record", fields: { index: { kind: "number" } } },
      transaction: { ...transactionFields, optional: true },
      block: blockFields,
    },
  },
  identity: ["block.number", "block.hash", "log.index", "address", "signature", "args"],
})
