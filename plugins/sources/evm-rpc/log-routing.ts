import { Creations } from "./creations.ts"
import type { Child, Children, Factories } from "./factories.ts"
import type { ListedEvent, LogShape, Route } from "./log-bucket.ts"
import { LogExpectations } from "./log-expectations.ts"
import { covers, filtersOf, type LogFilter, MAX_FILTER_ENTRIES } from "./log-filter.ts"
import { LogMatcher, makeShapes } from "./log-matcher.ts"
import type { Log } from "./logs.ts"
import type { WatchedEvents } from "./selectors/event.ts"
import type { WatchedFactory } from "./selectors/factory.ts"

/** What the interests of one version in logs are compiled to. */
interface Compiled {
  readonly listed: ReadonlyArray<ListedEvent>
  readonly children: ReadonlyArray<Children>
  readonly matcher: LogMatcher
  readonly creations: Creations | null
}

/** Compiles interests in logs, among them those in what `followed` make: factories whose children are known. */
export const compileLogs = (
  wanted: ReadonlyArray<{ readonly id: string; readonly watched: WatchedEvents }>,
  followed: ReadonlyArray<WatchedFactory>,
  factories: Factories,
): LogRouting => {
  const shapeOf = makeShapes()
  const listed = wanted.flatMap(({ id, watched: { addresses, factory, events } }) =>
    events.map((event): ListedEvent => {
      const children = factory === null ? null : factories.of(factory)
      return { id, addresses, children, event, shape: shapeOf(event) }
    }),
  )
  const used = new Map(followed.map((factory) => [factory.key, factory]))
  const creations = used.size === 0 ? null : new Creations([...used.values()], factories)
  const children = [...used.values()].map((factory) => factories.of(factory))
  const compiled = { listed, children, matcher: new LogMatcher(listed), creations }
  return new LogRouting(compiled, askedOf(compiled, all))
}

const all = ({ list }: Children): ReadonlyArray<Child> => list

/** What is asked for: of each factory its event, and the events of some of its children. */
const askedOf = (
  { listed, creations }: Compiled,
  some: (children: Children) => ReadonlyArray<Child>,
): ReadonlyArray<ListedEvent> => {
  const addresses = new Map<Children, ReadonlyArray<string> | null>()
  const made = (children: Children) => {
    let found = addresses.get(children)
    if (found === undefined) {
      const list = some(children)
      found = list.length > MAX_FILTER_ENTRIES ? null : list.map(({ address }) => address)
      addresses.set(children, found)
    }
    return found
  }
  const asked = listed.flatMap((one) => {
    if (one.children === null) return [one]
    const found = made(one.children)
    return found?.length === 0 ? [] : [{ ...one, addresses: found }]
  })
  return creations === null ? asked : [...asked, ...creations.listed]
}

/** The interests in logs of one version, as nodes are asked for them at one time. */
export class LogRouting {
  /** What nodes are asked for; empty when nobody wants any log. */
  readonly filters: ReadonlyArray<LogFilter>
  readonly #compiled: Compiled
  readonly #asked: ReadonlyArray<ListedEvent>
  /** The children that each factory had at that time, null for too many to name, and the count of their changes. */
  readonly #had: ReadonlyMap<Children, { readonly addresses: ReadonlySet<string> | null; readonly changes: number }>
  #expectations: LogExpectations | undefined = undefined

  constructor(compiled: Compiled, asked: ReadonlyArray<ListedEvent>) {
    this.#compiled = compiled
    this.#asked = asked
    this.filters = filtersOf(asked)
    this.#had = new Map(
      compiled.children.map((children) => {
        const { list, changes } = children
        const addresses = list.length > MAX_FILTER_ENTRIES ? null : new Set(list.map(({ address }) => address))
        return [children, { addresses, changes }]
      }),
    )
  }

  /** The routes of a log; `topic0`, its first topic, in lower case. */
  routes(topic0: string | undefined, log: Log): ReadonlyArray<Route<LogShape>> {
    return this.#compiled.matcher.routes(topic0, log)
  }

  /** Whether the bloom of a block announces logs that some interest wants and of which none is among these. */
  misses(bloom: string, logs: ReadonlyArray<Log>): boolean {
    this.#expectations ??= new LogExpectations(this.#asked)
    return this.#expectations.misses(bloom, logs)
  }

  /** What tells of new children; null where there is no factory. */
  get creations(): Creations | null {
    return this.#compiled.creations
  }

  /** Whether it takes note of all that the factories of `other` make. */
  follows(other: LogRouting): boolean {
    return other.#compiled === this.#compiled || other.#compiled.children.every((children) => this.#had.has(children))
  }

  /** The same as nodes are to be asked now: the very same unless it is other children by now. */
  refreshed(): LogRouting {
    const isOther = [...this.#had].some(
      ([{ list, changes }, had]) =>
        changes !== had.changes && (list.length <= MAX_FILTER_ENTRIES || had.addresses !== null),
    )
    return isOther ? new LogRouting(this.#compiled, askedOf(this.#compiled, all)) : this
  }

  /** What is to be asked for beside it, as children came since that its filters do not let through; null if nothing is. */
  get unasked(): LogRouting | null {
    if ([...this.#had.keys()].every((children) => this.#since(children).length === 0)) return null
    const compiled = { ...this.#compiled, creations: null }
    const more = new LogRouting(
      compiled,
      askedOf(compiled, (children) => this.#since(children)),
    )
    return more.filters.every((filter) => this.filters.some((wide) => covers(wide, filter))) ? null : more
  }

  /** The lowest block in which a child came since. */
  get firstUnasked(): number {
    const since = [...this.#had.keys()].flatMap((children) => this.#since(children).slice(0, 1))
    return Math.min(...since.map(({ block }) => block))
  }

  /** The children that came since it was made. */
  #since(children: Children): ReadonlyArray<Child> {
    const { addresses, changes } = this.#had.get(children)!
    if (addresses === null || children.changes === changes) return []
    return children.list.filter(({ address }) => !addresses.has(address))
  }
}
