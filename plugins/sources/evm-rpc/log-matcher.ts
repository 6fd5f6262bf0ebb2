import { formName } from "./abi.ts"
import { compileArguments } from "./decode.ts"
import { compileFit } from "./fit.ts"
import { Bucket, type ListedEvent, type LogShape, NO_ROUTES, type Route } from "./log-bucket.ts"
import type { Log } from "./logs.ts"
import type { WatchedEvent } from "./selectors/log-event.ts"

/** The shapes of events; what is decoded alike is one shape. */
export const makeShapes = (): ((event: WatchedEvent) => LogShape) => {
  const shapes = new Map<string, LogShape>()
  return ({ name, signature, parameters, topic0 }) => {
    const anonymous = topic0 === null
    const key = `${anonymous} ${formName(signature, parameters)}`
    let shape = shapes.get(key)
    if (shape === undefined) {
      shape = {
        name,
        signature,
        decode: compileArguments({ signature, parameters, firstTopic: anonymous ? 0 : 1 }),
        fits: anonymous ? compileFit(parameters) : null,
      }
      shapes.set(key, shape)
    }
    return shape
  }
}

/** Buckets by the count of topics. */
const bucketsOf = (listed: ReadonlyArray<ListedEvent>, position: number): ReadonlyArray<Bucket | undefined> => {
  const counts: Array<Bucket | undefined> = []
  for (const [count, members] of Map.groupBy(listed, ({ event }) => event.topics))
    counts[count] = new Bucket(members, position)
  return counts
}

/** Finds the interests that a log concerns, in constant time. */
export class LogMatcher {
  readonly #named = new Map<string, ReadonlyArray<Bucket | undefined>>()
  readonly #anonymous: ReadonlyArray<Bucket | undefined>
  /** The named events of the interests that want anonymous ones as well, by first topic and count of topics. */
  readonly #alsoNamed = new Map<string, Set<string>>()

  constructor(listed: ReadonlyArray<ListedEvent>) {
    const byTopic0 = Map.groupBy(listed, ({ event }) => event.topic0)
    const anonymous = byTopic0.get(null) ?? []
    this.#anonymous = bucketsOf(anonymous, 0)
    for (const [topic0, members] of byTopic0) if (topic0 !== null) this.#named.set(topic0, bucketsOf(members, 1))
    for (const { id } of anonymous) this.#alsoNamed.set(id, new Set())
    for (const { id, event } of listed)
      if (event.topic0 !== null) this.#alsoNamed.get(id)?.add(`${event.topic0} ${event.topics}`)
  }

  /** The routes of a log; `topic0`, its first topic, in lower case. */
  routes(topic0: string | undefined, log: Log): ReadonlyArray<Route<LogShape>> {
    const count = log.topics.length
    const named = topic0 === undefined ? undefined : this.#named.get(topic0)?.[count]
    const routes = named === undefined ? NO_ROUTES : named.routes(log)
    const anonymous = this.#anonymous[count]
    return anonymous === undefined ? routes : [...routes, ...this.#anonymousRoutes(anonymous, topic0, log)]
  }

  /** A log that is a named event of an interest is none of its anonymous ones. */
  #anonymousRoutes(bucket: Bucket, topic0: string | undefined, log: Log): ReadonlyArray<Route<LogShape>> {
    const name = `${topic0} ${log.topics.length}`
    return bucket.routes(log).flatMap(({ shape, interests }) => {
      if (shape.fits?.(log.topics, log.data) !== true) return []
      const unnamed = interests.filter((id) => this.#alsoNamed.get(id)?.has(name) !== true)
      return unnamed.length === 0 ? [] : [{ shape, interests: unnamed }]
    })
  }
}
