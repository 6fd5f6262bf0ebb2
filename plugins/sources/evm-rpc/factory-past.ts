import { Clock, Effect, Result } from "effect"
import { compareCursors, type Cursor, minCursor, nextOf, startOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { Anchor } from "../../../core/plugin/source.ts"
import type { Chain } from "./chain.ts"
import type { Factories } from "./factories.ts"
import { type Extent, readPast } from "./factory-scan.ts"
import { waitAfter } from "./rpc/backoff.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"
import type { WatchedFactory } from "./selectors/factory.ts"

/** Ranges of the past that are read before the head is looked at again. */
const RANGES = 8

/** Why the last piece of a factory's past could not be read, and when it is tried again. */
interface Failure {
  readonly reason: string
  readonly count: number
  readonly again: number
}

/** What the past of factories is read with. */
type Reach = Pick<Extent, "deepEnd" | "hashOf">

/**
 * Reads the past of factories, a piece at a time. It is over for a factory when it meets the position of the run, which
 * stands still meanwhile.
 */
export class Past {
  readonly #chain: Chain
  readonly #providers: Providers
  readonly #factories: Factories
  readonly #networkStart: Cursor
  readonly #perSecond: number | undefined
  readonly #failures = new Map<string, Failure>()
  #end = 0

  /** @param perSecond requests that a provider may be sent in a second, if that is limited */
  constructor(
    chain: Chain,
    providers: Providers,
    factories: Factories,
    networkStart: Cursor,
    perSecond: number | undefined,
  ) {
    this.#chain = chain
    this.#providers = providers
    this.#factories = factories
    this.#networkStart = networkStart
    this.#perSecond = perSecond
  }

  /** Whether the past of every factory in use is known. */
  get isKnown(): boolean {
    return this.#factories.unknown.length === 0
  }

  /** How far it is, for a person. */
  get trouble(): string | null {
    const [factory] = this.#factories.unknown
    if (factory === undefined) return null
    const { scanned } = this.#factories.of(factory)
    const at = scanned === null ? "" : `, read up to ${scanned}`
    const failure = this.#failures.get(factory.key)
    const why = failure === undefined ? "" : `: ${failure.reason}`
    return `looks for the contracts that the factory ${factory.addresses.join(", ")} made in blocks ${this.#startOf(factory)} to ${this.#end}${at}${why}`
  }

  /** What pending interests wait for, as it is now. */
  explain(pending: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
    const { trouble } = this
    return trouble === null || pending.size === 0 ? pending : new Map([...pending.keys()].map((id) => [id, trouble]))
  }

  /** Follows the factories whose past ends before what is read next. */
  settle(cursor: Cursor): void {
    for (const factory of this.#factories.unknown) {
      const children = this.#factories.of(factory)
      const start = startOf(this.#startOf(factory))
      const known = Math.max(start.primary, children.scanned ?? -1)
      if (known < nextOf(cursor) - 1) continue
      // A rewind that reaches further than this takes something back that is not read again by going on from there.
      const since = compareCursors(start, this.#networkStart) < 0 ? this.#networkStart : start
      this.#factories.follow(children, minCursor(since, cursor))
    }
  }

  /**
   * Reads the next piece of a factory whose past is not known, and answers the hashes that show it; null if there is
   * nothing to read at present. What fails is tried again after a while: nobody else has to wait for it.
   */
  readonly read = Effect.fnUntraced(function* (
    this: Past,
    cursor: Cursor,
    reach: Reach,
  ): Effect.fn.Return<ReadonlyArray<Anchor> | null, SourceRefused> {
    const now = yield* Clock.currentTimeMillis
    const factory = this.#factories.unknown.find(({ key }) => (this.#failures.get(key)?.again ?? 0) <= now)
    if (factory === undefined) return null
    const { key } = factory
    const { scanned } = this.#factories.of(factory)
    const result = yield* Effect.result(this.readOf(factory, cursor, reach))
    if (Result.isSuccess(result)) {
      this.#failures.delete(key)
      return result.success
    }
    const { failure } = result
    if (failure._tag === "SourceRefused") return yield* failure
    const count = (this.#failures.get(key)?.count ?? 0) + 1
    this.#failures.set(key, { reason: failure.reason, count, again: now + waitAfter(count, failure.retryAfterMs) })
    return this.#factories.of(factory).scanned === scanned ? null : []
  })

  /** Reads the next piece of the past of a factory. */
  readonly readOf = Effect.fnUntraced(function* (
    this: Past,
    factory: WatchedFactory,
    cursor: Cursor,
    reach: Reach,
  ): Effect.fn.Return<ReadonlyArray<Anchor>, RpcFailure | SourceRefused> {
    const { range } = yield* this.#providers.preferred
    this.#end = nextOf(cursor) - 1
    const extent = {
      ...reach,
      start: this.#startOf(factory),
      end: this.#end,
      blocks: range.blocks * RANGES,
      perSecond: this.#perSecond,
    }
    const anchors = yield* readPast(this.#chain, this.#providers, this.#factories, factory, extent)
    this.settle(cursor)
    return anchors
  })

  #startOf({ start }: WatchedFactory): number {
    return start ?? nextOf(this.#networkStart)
  }
}
