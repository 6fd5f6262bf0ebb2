import type { ListedEvent } from "./log-bucket.ts"

/** What is asked of a node: addresses, and what each topic may be; null for any. */
export interface LogFilter {
  readonly address: ReadonlyArray<string> | null
  readonly topics: ReadonlyArray<ReadonlyArray<string> | null>
}

type Entries = ReadonlyArray<string> | null

/** Nodes refuse long lists; beyond this many entries the list is left out and logs are chosen here. */
export const MAX_FILTER_ENTRIES = 500

/** Each filter is a call of its own for each piece of the chain. */
const MAX_FILTERS = 4

/** What each topic may be; those behind the last are free. */
const topicsOf = ({ event: { filter } }: ListedEvent): LogFilter["topics"] =>
  filter.slice(0, filter.findLastIndex((values) => values !== null) + 1)

const unite = (lists: ReadonlyArray<Entries>): Entries => {
  const all = new Set<string>()
  for (const list of new Set(lists)) {
    if (list === null) return null
    for (const entry of list) all.add(entry)
  }
  return all.size > MAX_FILTER_ENTRIES ? null : [...all]
}

/** The filter that lets through what any of these events needs. */
const filterOf = (listed: ReadonlyArray<ListedEvent>): LogFilter => {
  const filters = listed.map(topicsOf)
  const shortest = Math.min(...filters.map((topics) => topics.length))
  const topics = Array.from({ length: shortest }, (_, i) => unite(filters.map((filter) => filter[i]!)))
  while (topics.at(-1) === null) topics.pop()
  return { address: unite(listed.map(({ addresses }) => addresses)), topics }
}

const holds = (wide: Entries, narrow: Entries): boolean => {
  if (wide === null || narrow === null) return wide === null
  const entries = new Set(wide)
  return narrow.every((entry) => entries.has(entry))
}

/** Whether everything that `narrow` lets through comes with `wide` as well. */
export const covers = (wide: LogFilter, narrow: LogFilter): boolean =>
  holds(wide.address, narrow.address) && wide.topics.every((topic, i) => holds(topic, narrow.topics[i] ?? null))

/** Addresses or none, and the topics by which a node can choose: what differs in it would widen what is asked for. */
const fine = (listed: ListedEvent): string =>
  `${listed.addresses === null} ${topicsOf(listed)
    .map((values) => values !== null)
    .join(" ")}`

const coarse = ({ addresses, event }: ListedEvent): string => `${addresses === null} ${event.topic0 === null}`

/**
 * The filters that together let through what the events need, and little else: one that names no address or no value of
 * an argument does not open the others.
 */
export const filtersOf = (listed: ReadonlyArray<ListedEvent>): ReadonlyArray<LogFilter> => {
  const finely = Map.groupBy(listed, fine)
  const groups = finely.size > MAX_FILTERS ? Map.groupBy(listed, coarse) : finely
  const filters = [...groups.values()].map(filterOf)
  return filters.filter(
    (filter, i) => !filters.some((other, j) => i !== j && covers(other, filter) && (j < i || !covers(filter, other))),
  )
}
