import { Schema } from "effect"
import { type AbiEvent, parseAbiItem, toEventSelector, toEventSignature } from "viem"
import type { RecordType } from "../../../core/model/fields.ts"
import type { Problem } from "../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../core/plugin/source.ts"
import { nameParameters, type NamedParameter, parameterProblems, recordOf } from "./abi.ts"
import { evmAddress } from "./address.ts"

/** What a monitor looks for. Without `address`, at any address. */
export const Selector = Schema.Struct({
  kind: Schema.Literals(["event"]).annotate({ message: 'expected a supported selector kind: "event"' }),
  address: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  event: Schema.String,
})
export type Selector = typeof Selector.Type

/** A selector that was understood. */
export interface EventSelector {
  /** Canonical addresses, or null for any. */
  readonly addresses: ReadonlyArray<string> | null
  readonly name: string
  /** `Transfer(address,address,uint256)`. */
  readonly signature: string
  readonly topic0: string
  /** How many topics a log of the event has, the signature's included. */
  readonly topics: number
  readonly parameters: ReadonlyArray<NamedParameter>
}

/** An indexed argument takes a topic, and a log has three beside the signature's. */
const MAX_INDEXED = 3

const readAddresses = (selector: Selector, problems: Array<Problem>): ReadonlyArray<string> | null => {
  if (selector.address === undefined) return null
  const listed = typeof selector.address === "string" ? [selector.address] : selector.address
  if (listed.length === 0)
    problems.push({ path: "address", message: "the list is empty; name an address, or leave the key out to match any" })
  const addresses = new Set<string>()
  for (const [i, text] of listed.entries()) {
    const canonical = evmAddress.parse(text)
    if (canonical === null)
      problems.push({
        path: typeof selector.address === "string" ? "address" : `address.${i}`,
        message: `'${text}' is no address: expected 0x and 40 hex digits, in one case or with the right checksum`,
      })
    else addresses.add(canonical)
  }
  return [...addresses]
}

const shapeOfSignature =
  "expected a signature such as event Transfer(address indexed from, address indexed to, uint256 value)"

/** Far above any real signature, and short enough for the parser to go through whatever it holds. */
const MAX_SIGNATURE = 4096

const parseEvent = (text: string): AbiEvent | string => {
  if (text.length > MAX_SIGNATURE)
    return `the signature has ${text.length} characters; at most ${MAX_SIGNATURE} are read`
  if (!/^\s*event\s/.test(text)) return `'${text}' does not begin with 'event'; ${shapeOfSignature}`
  try {
    const item = parseAbiItem(text.trim().replace(/;$/, "") as "event E()") as unknown as AbiEvent
    return item.type === "event" ? item : `'${text}' is no event; ${shapeOfSignature}`
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n\nVersion")[0]!.replaceAll(/\s*\n+\s*/g, " ") : ""
    return `${reason} (${shapeOfSignature})`
  }
}

/** Understands a selector, or tells everything that is wrong with it. */
export const readSelector = (selector: Selector): EventSelector | { readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const addresses = readAddresses(selector, problems)
  const event = parseEvent(selector.event)
  if (typeof event === "string") return { problems: [...problems, { path: "event", message: event }] }
  const parameters = nameParameters(event.inputs)
  for (const message of parameterProblems(parameters)) problems.push({ path: "event", message })
  const indexed = parameters.filter((parameter) => parameter.indexed).length
  if (indexed > MAX_INDEXED)
    problems.push({ path: "event", message: `${indexed} parameters are indexed; an event can have ${MAX_INDEXED}` })
  if (problems.length > 0) return { problems }
  return {
    addresses,
    name: event.name,
    signature: toEventSignature(event),
    topic0: toEventSelector(event),
    topics: 1 + indexed,
    parameters,
  }
}

/** The fields of a log that matches the selector. */
export const eventFields = (args: RecordType): RecordType => ({
  kind: "record",
  fields: {
    kind: { kind: "string" },
    name: { kind: "string" },
    signature: { kind: "string" },
    address: { kind: "address" },
    args,
    log: { kind: "record", fields: { index: { kind: "number" } } },
    transaction: { kind: "record", optional: true, fields: { hash: { kind: "bytes" }, index: { kind: "number" } } },
    block: {
      kind: "record",
      fields: { number: { kind: "number" }, hash: { kind: "bytes" }, timestamp: { kind: "number" } },
    },
  },
})

const IDENTITY = ["block.number", "block.hash", "log.index", "address", "signature", "args"]

/** Checks a selector and says what it yields. */
export const describeSelector = (
  selector: Selector,
): SelectorDescription | { readonly problems: ReadonlyArray<Problem> } => {
  const read = readSelector(selector)
  if ("problems" in read) return read
  return { fields: eventFields(recordOf(read.parameters)), identity: IDENTITY }
}
