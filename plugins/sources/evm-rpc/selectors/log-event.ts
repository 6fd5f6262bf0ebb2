import { toEventSelector, toEventSignature } from "viem"
import type { Problem } from "../../../../core/model/problem.ts"
import type { NamedParameter } from "../abi.ts"
import { type ArgumentFilter, topicOf } from "./arguments.ts"
import type { Item } from "./items.ts"

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

/** Reads an event whose indexed arguments must have the values in `args`. */
export const readEvent = (item: Item<"event">, args: ArgumentFilter, problems: Array<Problem>): WatchedEvent => {
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
