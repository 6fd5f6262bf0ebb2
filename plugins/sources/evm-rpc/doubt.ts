import type { Header } from "./header.ts"
import type { Log } from "./logs.ts"
import { type Routing, seenKey } from "./routing.ts"

/** The blocks whose blooms announce logs that some interest wants and that did not come. */
export const blocksInDoubt = (
  blocks: ReadonlyArray<Header>,
  logs: ReadonlyArray<Log>,
  routing: Routing,
): ReadonlyArray<Header> => {
  const byBlock = Map.groupBy(logs, ({ block }) => block)
  return blocks.filter(({ number, bloom }) => {
    if (bloom === null) return false
    const seen = new Set<string>()
    for (const { topics, address } of byBlock.get(number) ?? []) {
      const topic0 = topics[0]?.toLowerCase() ?? ""
      seen.add(topic0)
      seen.add(seenKey(topic0, address))
    }
    return routing.misses(bloom, seen)
  })
}

const position = ({ block, index }: Log): string => `${block}:${index}`

/** Joins two answers about the same blocks, in order. */
export const joinLogs = (logs: ReadonlyArray<Log>, others: ReadonlyArray<Log>): ReadonlyArray<Log> => {
  const known = new Set(logs.map(position))
  const more = others.filter((log) => !known.has(position(log)))
  return more.length === 0 ? logs : [...logs, ...more].toSorted((a, b) => a.block - b.block || a.index - b.index)
}
