import { Metric } from "effect"
import type { SourceRecord } from "../../../core/plugin/source.ts"
import { type Child, type Children, type Factories, recordOf } from "./factories.ts"
import type { ListedEvent } from "./log-bucket.ts"
import { LogMatcher, makeShapes } from "./log-matcher.ts"
import { type Log, transactionOf } from "./logs.ts"
import type { WatchedFactory } from "./selectors/factory.ts"

/** Counts logs of factories that tell of no contract. */
export const undecodableCreations = Metric.counter("blockwatcher_undecodable_creations_total", {
  description: "Logs of factories that tell of no contract: they did not decode, or name the address 0",
  incremental: true,
})

/** The event of a factory as something to look for, under the factory's key. */
export const listCreations = (
  factories: ReadonlyArray<WatchedFactory>,
  shapeOf: ReturnType<typeof makeShapes> = makeShapes(),
): ReadonlyArray<ListedEvent> =>
  factories.map(({ key, addresses, event }) => ({ id: key, addresses, children: null, event, shape: shapeOf(event) }))

/** Finds the contracts that factories make in the logs of these. */
export class Creations {
  /** What nodes are asked for. */
  readonly listed: ReadonlyArray<ListedEvent>
  readonly #factories: Factories
  readonly #matcher: LogMatcher
  readonly #made = new Map<string, { readonly children: Children; readonly param: string }>()

  constructor(used: ReadonlyArray<WatchedFactory>, factories: Factories) {
    this.listed = listCreations(used)
    this.#factories = factories
    this.#matcher = new LogMatcher(this.listed)
    for (const factory of used) this.#made.set(factory.key, { children: factories.of(factory), param: factory.param })
  }

  /** Makes the contracts known that logs in their order tell of; answers the records of those that were not. */
  discover(logs: ReadonlyArray<Log>): { readonly records: ReadonlyArray<SourceRecord>; readonly undecodable: number } {
    const records: Array<SourceRecord> = []
    let undecodable = 0
    for (const { children, child } of this.#told(logs)) {
      if (child === null) undecodable++
      else if (this.#factories.add(children, child)) records.push(recordOf(children, child))
    }
    return { records, undecodable }
  }

  /** The same for logs of blocks that were handed over already. The next batch, too, will hold the records. */
  discoverLate(logs: ReadonlyArray<Log>): ReadonlyArray<SourceRecord> {
    const records: Array<SourceRecord> = []
    for (const { children, child } of this.#told(logs))
      if (child !== null && children.followed && this.#factories.addPast(children, child))
        records.push(recordOf(children, child))
    return records
  }

  /** The contracts that logs tell of; null for one that they do not tell. */
  *#told(logs: ReadonlyArray<Log>): Iterable<{ readonly children: Children; readonly child: Child | null }> {
    let rawTopic: string | undefined
    let topic0: string | undefined
    for (const log of logs) {
      const first = log.topics[0]
      if (first !== rawTopic) {
        rawTopic = first
        topic0 = first?.toLowerCase()
      }
      for (const { shape, interests } of this.#matcher.routes(topic0, log)) {
        for (const key of interests) {
          const { children, param } = this.#made.get(key)!
          const address = addressIn(() => shape.decode(log.topics, log.data)[param])
          const { block, index } = log
          const transaction = transactionOf(log)?.index ?? null
          yield { children, child: address === null ? null : { address, block, index, transaction } }
        }
      }
    }
  }
}

const ZERO = `0x${"0".repeat(40)}`

/** The address that is read; null if it does not decode, or names no contract. */
export const addressIn = (read: () => unknown): string | null => {
  try {
    const address = read()
    return typeof address === "string" && address !== ZERO ? address : null
  } catch {
    return null
  }
}
