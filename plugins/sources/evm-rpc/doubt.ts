import type { Header } from "./header.ts"
import type { Log } from "./logs.ts"
import type { LogRouting } from "./log-routing.ts"

/** The blocks whose blooms announce logs that some interest wants and that did not come. */
export const blocksInDoubt = (
  blocks: ReadonlyArray<Header>,
  logs: ReadonlyArray<Log>,
  routing: LogRouting,
): ReadonlyArray<Header> => {
  const byBlock = Map.groupBy(logs, ({ block }) => block)
  return blocks.filter(({ number, bloom }) => bloom !== null && routing.misses(bloom, byBlock.get(number) ?? []))
}

const position = ({ block, index }: Log): string => `${block}:${index}`

/** Joins two answers about the same blocks, in order. */
export const joinLogs = (logs: ReadonlyArray<Log>, others: ReadonlyArray<Log>): ReadonlyArray<Log> => {
  const known = new Set(logs.map(position))
  const more = others.filter((log) => !known.has(position(log)))
  return more.length === 0 ? logs : [...logs, ...more].toSorted((a, b) => a.block - b.block || a.index - b.index)
}
