import type { InterestSet } from "../../../core/plugin/source.ts"
import { type BloomBits, bloomBits, mayHold } from "./bloom.ts"
import { compileArguments, type DecodeArguments } from "./decode.ts"
import { type EventSelector, readSelector, type Selector } from "./selector.ts"

/** What every log of one event with the same argument names is read as. */
export interface LogShape {
  readonly name: string
  readonly signature: string
  readonly decode: DecodeArguments
}

/** The interests of one shape that a log concerns. */
export interface Route {
  readonly shape: LogShape
  readonly interests: ReadonlyArray<string>
}

/** What is asked of a node: addresses and first topics, null for any. */
export interface LogFilter {
  readonly address: ReadonlyArray<string> | null
  readonly topics: ReadonlyArray<string> | null
}

/** Nodes refuse long lists; beyond this many entries the list is left out and logs are chosen here. */
const MAX_FILTER_ENTRIES = 500

const NO_ROUTES: ReadonlyArray<Route> = []

interface Listed {
  readonly id: string
  readonly selector: EventSelector
}

/** All interests in logs of one first topic and count of topics. */
class Bucket {
  readonly #any: ReadonlyArray<Route>
  readonly #listedAt: ReadonlyMap<string, ReadonlyArray<Listed>>
  /** Joined at the first log of an address, so that what is held does not grow with addresses times monitors. */
  readonly #at = new Map<string, ReadonlyArray<Route>>()
  readonly #shapeOf: (selector: EventSelector) => LogShape
  readonly #anywhere: ReadonlyArray<Listed>

  constructor(listed: ReadonlyArray<Listed>, shapeOf: (selector: EventSelector) => LogShape) {
    this.#shapeOf = shapeOf
    this.#anywhere = listed.filter(({ selector }) => selector.addresses === null)
    this.#any = this.#group(this.#anywhere)
    const at = new Map<string, Array<Listed>>()
    for (const one of listed)
      for (const address of one.selector.addresses ?? []) {
        const here = at.get(address)
        if (here === undefined) at.set(address, [one])
        else here.push(one)
      }
    this.#listedAt = at
  }

  routes(address: string): ReadonlyArray<Route> {
    const listed = this.#listedAt.get(address)
    if (listed === undefined) return this.#any
    let routes = this.#at.get(address)
    if (routes === undefined) {
      routes = this.#group([...this.#anywhere, ...listed])
      this.#at.set(address, routes)
    }
    return routes
  }

  #group(listed: ReadonlyArray<Listed>): ReadonlyArray<Route> {
    const byShape = Map.groupBy(listed, ({ selector }) => this.#shapeOf(selector))
    return [...byShape].map(([shape, members]) => ({ shape, interests: members.map(({ id }) => id) }))
  }
}

const filterOf = (listed: ReadonlyArray<Listed>): LogFilter => {
  const addresses = new Set<string>()
  const topics = new Set<string>()
  let anywhere = false
  for (const { selector } of listed) {
    topics.add(selector.topic0)
    if (selector.addresses === null) anywhere = true
    for (const address of selector.addresses ?? []) addresses.add(address)
  }
  return {
    address: anywhere || addresses.size > MAX_FILTER_ENTRIES ? null : [...addresses],
    topics: topics.size > MAX_FILTER_ENTRIES ? null : [...topics],
  }
}

const shapeKey = ({ signature, parameters }: EventSelector): string => JSON.stringify([signature, parameters])

/** The interests of one version, compiled so that a log finds those that it concerns in constant time. */
export class Routing {
  readonly version: number
  /** Null when nobody wants any log. */
  readonly filter: LogFilter | null
  readonly #buckets = new Map<string, Array<Bucket | undefined>>()
  readonly #expectations: ReadonlyArray<Expectation>

  constructor(set: InterestSet<Selector>) {
    this.version = set.version
    const listed: Array<Listed> = []
    for (const { id, selector } of set.interests) {
      const read = readSelector(selector)
      if (!("problems" in read)) listed.push({ id, selector: read })
    }
    this.filter = listed.length === 0 ? null : filterOf(listed)
    const shapes = new Map<string, LogShape>()
    const shapeOf = (selector: EventSelector): LogShape => {
      const key = shapeKey(selector)
      let shape = shapes.get(key)
      if (shape === undefined) {
        shape = {
          name: selector.name,
          signature: selector.signature,
          decode: compileArguments(selector.parameters),
        }
        shapes.set(key, shape)
      }
      return shape
    }
    for (const [topic0, sameTopic] of Map.groupBy(listed, ({ selector }) => selector.topic0)) {
      const counts: Array<Bucket | undefined> = []
      for (const [count, members] of Map.groupBy(sameTopic, ({ selector }) => selector.topics))
        counts[count] = new Bucket(members, shapeOf)
      this.#buckets.set(topic0, counts)
    }
    this.#expectations = expectationsOf(listed)
  }

  /** The routes of a log; `topic0` and `address` in lower case. */
  routes(topic0: string, topics: number, address: string): ReadonlyArray<Route> {
    return this.#buckets.get(topic0)?.[topics]?.routes(address) ?? NO_ROUTES
  }

  /**
   * Whether the bloom of a block announces logs that some interest wants and of which none was seen. Only a hint: a
   * bloom can announce what is not there.
   *
   * @param seen `topic0` and `address` of the logs that came, as `seenKey` and `topic0` alone
   */
  misses(bloom: string, seen: ReadonlySet<string>): boolean {
    return this.#expectations.some(({ topic0, topicBits, addresses }) => {
      if (addresses === null) return !seen.has(topic0) && mayHold(bloom, topicBits())
      return (
        !addresses.some(({ address }) => seen.has(seenKey(topic0, address))) &&
        mayHold(bloom, topicBits()) &&
        addresses.some(({ bits }) => mayHold(bloom, bits()))
      )
    })
  }
}

/** The key of an address's logs of one event in the `seen` of `misses`. */
export const seenKey = (topic0: string, address: string): string => topic0 + address

interface Expectation {
  readonly topic0: string
  readonly topicBits: () => BloomBits
  readonly addresses: ReadonlyArray<{ readonly address: string; readonly bits: () => BloomBits }> | null
}

const lazily = <A>(compute: () => A): (() => A) => {
  let value: A | undefined
  return () => (value ??= compute())
}

const expectationsOf = (listed: ReadonlyArray<Listed>): ReadonlyArray<Expectation> => {
  const distinct = new Map<string, Expectation>()
  for (const { selector } of listed) {
    const { topic0 } = selector
    const key = `${topic0} ${selector.addresses?.join(" ") ?? "*"}`
    if (distinct.has(key)) continue
    distinct.set(key, {
      topic0,
      topicBits: lazily(() => bloomBits(topic0)),
      addresses: selector.addresses?.map((address) => ({ address, bits: lazily(() => bloomBits(address)) })) ?? null,
    })
  }
  return [...distinct.values()]
}
