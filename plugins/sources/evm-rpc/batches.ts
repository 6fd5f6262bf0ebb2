import { Effect, Stream } from "effect"
import { type Cursor, endOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceBatch } from "../../../core/plugin/source.ts"
import type { Chain } from "./chain.ts"
import { toEvents } from "./events.ts"
import type { Header } from "./header.ts"
import type { Asked } from "./log-reads.ts"
import type { Routing } from "./routing.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"

/** Blocks that are read as one batch, those behind `after`. */
interface Span {
  readonly from: number
  readonly to: number
  readonly after: Cursor
}

/** Ranges that are read ahead of the one that is being handed over. */
const AHEAD = 3

/**
 * Reads ranges that no reorganisation is expected to reach, and yields their batches in order. Several are asked for
 * ahead, whose answers stay bytes until it is their turn: what is parsed is dropped again before the garbage collector
 * copies it. A range that fails ends the stream behind the ranges before it.
 *
 * @param routing is read for each range
 */
export const deepBatches = (
  chain: Chain,
  providers: Providers,
  span: Span,
  routing: Effect.Effect<Routing>,
): Stream.Stream<SourceBatch, RpcFailure | SourceRefused> =>
  Stream.unfold(span.from, (from) =>
    from > span.to ? Effect.undefined : nextRange(providers, span, from, routing),
  ).pipe(
    Stream.mapEffect(
      (range) => Effect.map(chain.askAhead(range.from, range.to, range.routing), (asked) => ({ ...range, asked })),
      { concurrency: AHEAD },
    ),
    // Whoever was given the batch before has a turn before the next one is parsed.
    Stream.mapEffect((range) => Effect.andThen(Effect.yieldNow, deepBatch(chain, range))),
  )

const nextRange = Effect.fnUntraced(function* (
  providers: Providers,
  span: Span,
  from: number,
  routing: Effect.Effect<Routing>,
) {
  const { range } = yield* providers.preferred
  const to = Math.min(span.to, from + range.blocks - 1)
  return [{ from, to, after: span.after, routing: yield* routing }, to + 1] as const
})

const deepBatch = Effect.fnUntraced(function* (
  chain: Chain,
  { from, to, after, routing, asked }: Span & { readonly routing: Routing; readonly asked: Asked | null },
) {
  const { logs, timestamps, end } = yield* chain.logsBetween(from, to, routing, asked)
  const batch: SourceBatch = {
    events: toEvents(logs, routing, (block) => timestamps.get(block)!, after),
    upTo: endOf(to),
    resume: [{ primary: to, hash: end.hash }],
    interests: routing.version,
  }
  return batch
})

/** Reads the logs of blocks near the head, each by its hash. */
export const nearBatch = Effect.fnUntraced(function* (
  chain: Chain,
  headers: ReadonlyArray<Header>,
  routing: Routing,
  after: Cursor,
) {
  const logs = yield* chain.logsOf(headers, routing)
  const timestamps = new Map<number, number>()
  for (const { number, timestamp } of headers) {
    if (timestamp === null)
      return yield* new RpcFailure({ kind: "malformed", reason: `block ${number} was answered without a timestamp` })
    timestamps.set(number, timestamp)
  }
  const batch: SourceBatch = {
    events: toEvents(logs, routing, (block) => timestamps.get(block)!, after),
    upTo: endOf(headers.at(-1)!.number),
    resume: headers.map(({ number, hash }) => ({ primary: number, hash })),
    interests: routing.version,
  }
  return batch
})
