import type { DecodeArguments } from "./decode.ts"
import type { Birth, Births, Children } from "./factories.ts"
import type { Fits } from "./fit.ts"
import { isBefore } from "./log-position.ts"
import type { Log } from "./logs.ts"
import type { WatchedEvent } from "./selectors/log-event.ts"

/** What every log of one event with the same argument names is read as. */
export interface LogShape {
  readonly name: string
  readonly signature: string
  readonly decode: DecodeArguments
  /** For an anonymous event, whether a log may be one at all. */
  readonly fits: Fits | null
}

/** The interests of one shape that something concerns. */
export interface Route<Shape> {
  readonly shape: Shape
  readonly interests: ReadonlyArray<string>
}

/** An event that an interest wants, at addresses, at the children of a factory or at any. */
export interface ListedEvent {
  readonly id: string
  readonly addresses: ReadonlyArray<string> | null
  readonly children: Children | null
  readonly event: WatchedEvent
  readonly shape: LogShape
}

type Routes = ReadonlyArray<Route<LogShape>>

export const NO_ROUTES: Routes = []

const NO_BIRTHS: Births = new Map()

/** Routes of several lists, those of one shape as one. */
const joinRoutes = (lists: ReadonlyArray<Routes>): Routes => {
  const byShape = new Map<LogShape, Array<string>>()
  for (const { shape, interests } of lists.flat()) {
    const known = byShape.get(shape)
    if (known === undefined) byShape.set(shape, [...interests])
    else known.push(...interests)
  }
  return [...byShape].map(([shape, interests]) => ({ shape, interests }))
}

/** Those among them that want certain values in one topic, by the value. */
interface ByTopic {
  readonly position: number
  readonly listed: ReadonlyMap<string, ReadonlyArray<ListedEvent>>
  /** Made at the first log that has the value. */
  readonly buckets: Map<string, Bucket>
}

const byTopicOf = (listed: ReadonlyArray<ListedEvent>, position: number): ByTopic => {
  const byValue = new Map<string, Array<ListedEvent>>()
  for (const one of listed)
    for (const value of one.event.filter[position]!) {
      const here = byValue.get(value)
      if (here === undefined) byValue.set(value, [one])
      else here.push(one)
    }
  return { position, listed: byValue, buckets: new Map() }
}

/**
 * All interests in logs with one count of topics that agree in the topics before `position`. A log finds those that it
 * concerns by its address and its topics, however many others there are.
 */
export class Bucket {
  readonly #anywhere: ReadonlyArray<ListedEvent>
  readonly #any: Routes
  readonly #listedAt: ReadonlyMap<string, ReadonlyArray<ListedEvent>>
  /** Joined at the first log of an address, so that what is held does not grow with addresses times monitors. */
  readonly #at = new Map<string, Routes>()
  readonly #byTopic: ReadonlyArray<ByTopic>
  readonly #ofFactory: ReadonlyMap<Children, Routes>
  readonly #births: Births

  constructor(listed: ReadonlyArray<ListedEvent>, position: number) {
    const firstWanted = ({ event }: ListedEvent) =>
      event.filter.findIndex((values, i) => i >= position && values !== null)
    const byFirst = Map.groupBy(listed, firstWanted)
    const free = byFirst.get(-1) ?? []
    this.#byTopic = [...byFirst].flatMap(([first, members]) => (first === -1 ? [] : [byTopicOf(members, first)]))
    this.#anywhere = free.filter(({ addresses }) => addresses === null)
    this.#any = this.#group(this.#anywhere)
    const at = new Map<string, Array<ListedEvent>>()
    for (const one of free)
      for (const address of one.addresses ?? []) {
        const here = at.get(address)
        if (here === undefined) at.set(address, [one])
        else here.push(one)
      }
    this.#listedAt = at
    const byFactory = Map.groupBy(free, ({ children }) => children)
    byFactory.delete(null)
    this.#ofFactory = new Map([...byFactory].map(([children, members]) => [children!, this.#group(members)]))
    const [made] = this.#ofFactory.keys()
    this.#births = made?.births ?? NO_BIRTHS
  }

  /** The routes of a log. */
  routes(log: Log): Routes {
    const here = this.#freeAt(log.address)
    const births = this.#births === NO_BIRTHS ? undefined : this.#births.get(log.address)
    const free = births === undefined ? here : this.#withChildren(here, births, log)
    return this.#byTopic.length === 0 ? free : this.#withTopics(free, log)
  }

  /** What a contract logs before the log that tells of it is not its factory's. */
  #withChildren(here: Routes, births: ReadonlyArray<Birth>, log: Log): Routes {
    const lists = [here]
    for (const birth of births) {
      const routes = this.#ofFactory.get(birth.by)
      if (routes !== undefined && !isBefore(log, birth)) lists.push(routes)
    }
    if (lists.length === 1) return here
    return lists.length === 2 && here.length === 0 ? lists[1]! : joinRoutes(lists)
  }

  #freeAt(address: string): Routes {
    const listed = this.#listedAt.get(address)
    if (listed === undefined) return this.#any
    let routes = this.#at.get(address)
    if (routes === undefined) {
      routes = this.#group([...this.#anywhere, ...listed])
      this.#at.set(address, routes)
    }
    return routes
  }

  #withTopics(free: Routes, log: Log): Routes {
    const lists = [free]
    for (const { position, listed, buckets } of this.#byTopic) {
      const value = log.topics[position]!.toLowerCase()
      const wanting = listed.get(value)
      if (wanting === undefined) continue
      let bucket = buckets.get(value)
      if (bucket === undefined) {
        bucket = new Bucket(wanting, position + 1)
        buckets.set(value, bucket)
      }
      lists.push(bucket.routes(log))
    }
    return lists.length === 1 ? free : joinRoutes(lists)
  }

  #group(listed: ReadonlyArray<ListedEvent>): Routes {
    const byShape = Map.groupBy(listed, ({ shape }) => shape)
    return [...byShape].map(([shape, members]) => ({ shape, interests: members.map(({ id }) => id) }))
  }
}
