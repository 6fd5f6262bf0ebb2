import { FACTORY } from "../support/factory.ts"
import type { GateSetup, MonitorSetup } from "./setup.ts"

/*
 * Computes by itself what a perfect watcher would have told. It knows the chain's logs and the monitors' words, and uses
 * nothing of the program that is tested.
 */

export interface OracleLog {
  readonly block: number
  readonly hash: string
  readonly index: number
  readonly log: { readonly address: string; readonly topics: ReadonlyArray<string>; readonly data: string }
}

/** A log that a monitor matches. */
export interface Hit {
  /** Tells it apart from every other: monitor, block hash and log index. */
  readonly key: string
  readonly monitor: string
  readonly block: number
  readonly index: number
  /** In ms since 1970. */
  readonly time: number
  readonly from: string
  readonly to: string
  readonly value: bigint
}

/** keccak256 of `Transfer(address,address,uint256)`. */
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

export const keyOf = (monitor: string, hash: string, index: number): string => `${monitor} ${hash} ${index}`

/** keccak256 of `PoolCreated(address,uint24,int24,address)`. */
const CREATED = "0x90b8dd367dea5be1bd54ad8a2fffde95bbc9bfd82366d555565b0b9a4bfd2a12"

/** The contract that a log of the factory tells of; null if it tells of none. */
export const childOf = ({ address, topics, data }: OracleLog["log"]): string | null => {
  const tells = BigInt(address) === BigInt(FACTORY) && topics[0] === CREATED && topics.length === 3
  return tells && data.length === 2 + 2 * 64 ? `0x${data.slice(-40)}` : null
}

/** Whether the monitor watches an address; asked for one log after the other, as a factory's contracts come one by one. */
const watching = ({ tokens }: Pick<MonitorSetup, "tokens">): ((log: OracleLog["log"]) => boolean) => {
  if (tokens !== "children") return ({ address }) => tokens.some((token) => BigInt(address) === BigInt(token))
  const children = new Set<string>()
  return (log) => {
    const child = childOf(log)
    if (child !== null) children.add(child)
    return children.has(log.address)
  }
}

/** What of the logs, in their order, a monitor matches, gate aside. */
export const hitsOf = (
  monitor: Pick<MonitorSetup, "id" | "tokens" | "above">,
  logs: ReadonlyArray<OracleLog>,
  timeOf: (block: number) => number,
): ReadonlyArray<Hit> => {
  const isWatched = watching(monitor)
  return logs.flatMap(({ block, hash, index, log }) => {
    const { topics, data } = log
    if (!isWatched(log) || topics[0] !== TRANSFER || topics.length !== 3) return []
    const value = BigInt(data)
    if (monitor.above !== null && value <= BigInt(monitor.above)) return []
    const [from, to] = topics.slice(1).map((topic) => `0x${topic.slice(26)}`)
    return [
      {
        key: keyOf(monitor.id, hash, index),
        monitor: monitor.id,
        block,
        index,
        time: timeOf(block),
        from: from!,
        to: to!,
        value,
      },
    ]
  })
}

/** Hits of one gate that are told apart from others. */
export const groupOf = ({ by }: GateSetup, hit: Hit): string => (by === null ? "" : hit[by])

/** What a monitor tells of the hits, in groups that are told together. */
export const emissionsOf = (
  { gate }: Pick<MonitorSetup, "gate">,
  hits: ReadonlyArray<Hit>,
): ReadonlyArray<ReadonlyArray<Hit>> => {
  if (gate === null) return hits.map((hit) => [hit])
  const groups = Map.groupBy(hits, (hit) => groupOf(gate, hit))
  const emissions = [...groups.values()].flatMap((group) =>
    gate.type === "threshold" ? thresholds(group, gate.count!, gate.windowMs) : firsts(group, gate.windowMs),
  )
  return emissions.toSorted((a, b) => a.at(-1)!.block - b.at(-1)!.block || a.at(-1)!.index - b.at(-1)!.index)
}

/** Each time when so many hits lie within a window, they are told; then counting starts anew. */
const thresholds = (hits: ReadonlyArray<Hit>, count: number, windowMs: number): Array<Array<Hit>> => {
  const emissions: Array<Array<Hit>> = []
  let session: Array<Hit> = []
  for (const hit of hits) {
    session = [...session.filter(({ time }) => hit.time - time <= windowMs), hit]
    if (session.length < count) continue
    emissions.push(session)
    session = []
  }
  return emissions
}

/** The first hit is told, and those within a window behind it are not. */
const firsts = (hits: ReadonlyArray<Hit>, windowMs: number): Array<Array<Hit>> => {
  const emissions: Array<Array<Hit>> = []
  let until = -Infinity
  for (const hit of hits) {
    if (hit.time < until) continue
    emissions.push([hit])
    until = hit.time + windowMs
  }
  return emissions
}
