import { Schema } from "effect"
import type { Problem } from "../../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../../core/plugin/source.ts"
import { formName, recordOfAny } from "../abi.ts"
import { ArgumentFilter } from "./arguments.ts"
import { areMade, Contracts, readContracts, type WatchedContracts } from "./factory.ts"
import { blockFields, transactionFields } from "./fields.ts"
import { Abi, type Item, readItems, Signatures } from "./items.ts"
import { readEvent, type WatchedEvent } from "./log-event.ts"

/**
 * Events of contracts: those of the signatures in `event` or of a whole `abi`, at the addresses, at the contracts that
 * a factory made or at any, whose indexed arguments have the values in `args`.
 */
export const EventSelector = Schema.Struct({
  kind: Schema.Literal("event"),
  address: Schema.optionalKey(Contracts),
  event: Schema.optionalKey(Signatures),
  abi: Schema.optionalKey(Abi),
  args: Schema.optionalKey(ArgumentFilter),
})
export type EventSelector = typeof EventSelector.Type

/** A selector that was understood. */
export interface WatchedEvents extends WatchedContracts {
  readonly kind: "event"
  readonly events: ReadonlyArray<WatchedEvent>
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
  const contracts = readContracts(selector.address, problems)
  const items = readItems("event", { signatures: selector.event, abi: selector.abi }, problems)
  const read = items.map((item) => readEvent(item, selector.args ?? {}, problems))
  const events = distinct(items, read, problems)
  const anonymous = events.find(({ topic0 }) => topic0 === null)
  if (anonymous !== undefined && selector.address === undefined)
    problems.push({
      path: "address",
      message: `is missing: ${anonymous.name} is anonymous, and only the address of its contract tells its logs from others`,
    })
  if (anonymous !== undefined && areMade(selector.address))
    problems.push({
      path: "address",
      message: `${anonymous.name} is anonymous: once a factory has made many contracts, nothing tells its logs from all others; list addresses`,
    })
  return problems.length > 0 ? { problems } : { kind: "event", ...contracts, events }
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
