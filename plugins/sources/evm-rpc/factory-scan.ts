import { Effect, Metric, type Scope } from "effect"
import { startOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { Anchor, SourceBatch } from "../../../core/plugin/source.ts"
import { RangesAhead } from "./ahead.ts"
import { deepBatch, nearBatch } from "./batches.ts"
import type { Chain } from "./chain.ts"
import { addressIn, undecodableCreations } from "./creations.ts"
import type { Factories } from "./factories.ts"
import { positionOf } from "./log-position.ts"
import { Routing } from "./routing.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"
import type { WatchedFactory } from "./selectors/factory.ts"

/** Near blocks that are read at once. */
const NEAR = 32

/** How far the past of a factory is to be read, and from which block on a reorganisation may reach it. */
export interface Extent {
  /** The block that it begins with. */
  readonly start: number
  /** The block that it ends with. */
  readonly end: number
  /** The last block that no reorganisation is expected to reach. */
  readonly deepEnd: number
  /** At most so many blocks at once. */
  readonly blocks: number
  /** Requests that a provider may be sent in a second, if that is limited. */
  readonly perSecond: number | undefined
  /** The hash that a block is known to have. */
  readonly hashOf: (block: number) => string | undefined
}

/**
 * Reads the next piece of the past of a factory and makes the contracts known that it tells of. Answers the hashes of the
 * blocks that a reorganisation may reach. What was read before a failure stays known.
 */
export const readPast = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  factories: Factories,
  factory: WatchedFactory,
  extent: Extent,
): Effect.fn.Return<ReadonlyArray<Anchor>, RpcFailure | SourceRefused, Scope.Scope> {
  const children = factories.of(factory)
  const { key, addresses, event } = factory
  const routing = new Routing(0, [{ id: key, watched: { kind: "event", addresses, factory: null, events: [event] } }])
  const from = Math.max(extent.start, (children.scanned ?? -1) + 1)
  if (from > extent.end) return []
  const take = ({ events, upTo }: SourceBatch) => {
    let undecodable = 0
    for (const event of events) {
      const address = addressIn(() => (event.fields()["args"] as Readonly<Record<string, unknown>>)[factory.param])
      if (address === null) undecodable++
      else factories.addPast(children, { address, transaction: null, ...positionOf(event.cursor) })
    }
    factories.scannedTo(children, upTo.primary)
    return undecodable === 0 ? Effect.void : Metric.update(undecodableCreations, undecodable)
  }
  if (from > extent.deepEnd) {
    const { batch } = yield* readNear(
      chain,
      routing,
      { from, to: Math.min(extent.end, from + NEAR - 1) },
      extent.hashOf,
    )
    yield* take(batch)
    return batch.resume
  }
  const to = Math.min(extent.end, extent.deepEnd, from + extent.blocks - 1)
  const ahead = new RangesAhead(chain, providers, yield* Effect.scope, extent.perSecond)
  for (let at = from; at <= to;) {
    const read = yield* ahead.next({ from: at, to }, Effect.succeed(routing))
    const { batch } = yield* deepBatch(chain, read, at, startOf(at))
    yield* take(batch)
    at = batch.upTo.primary + 1
  }
  return []
}, Effect.scoped)

/** Reads blocks that a reorganisation may reach: they must be those that are known. */
const readNear = Effect.fnUntraced(function* (
  chain: Chain,
  routing: Routing,
  { from, to }: { readonly from: number; readonly to: number },
  hashOf: Extent["hashOf"],
) {
  const headers = yield* chain.headers(from, to)
  const other = headers.find(({ number, hash }) => (hashOf(number) ?? hash) !== hash)
  if (other !== undefined)
    return yield* new RpcFailure({
      kind: "missing",
      reason: `block ${other.number} is another one than was read; the chain changed while it was read`,
    })
  return yield* nearBatch(chain, headers, routing, startOf(from))
})
