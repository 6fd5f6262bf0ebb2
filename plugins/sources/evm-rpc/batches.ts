import { Deferred, Effect, Stream } from "effect"
import { type Cursor, endOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceBatch } from "../../../core/plugin/source.ts"
import type { Chain } from "./chain.ts"
import { toEvents } from "./events.ts"
import type { Header } from "./header.ts"
import type { Routing } from "./routing.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"
import { Turn } from "./rpc/turn.ts"

/** Blocks that are read as one batch, those behind `after`. */
interface Span {
  readonly from: number
  readonly to: number
  readonly after: Cursor
}

/** Ranges that are read ahead of the one that is being handed over. */
const AHEAD = 4

/**
 * Reads ranges that no reorganisation is expected to reach, several at once, and yields their batches in order. A range
 * that fails ends the stream behind the ranges before it.
 *
 * @param routing is read for each range
 */
export const deepBatches = (
  chain: Chain,
  providers: Providers,
  span: Span,
  routing: Effect.Effect<Routing>,
): Stream.Stream<SourceBatch, RpcFailure | SourceRefused> =>
  Stream.unfold({ from: span.from, turn: openTurn() }, (at) =>
    at.from > span.to ? Effect.undefined : nextRange(providers, span, at, routing),
  ).pipe(
    Stream.mapEffect(
      (range) =>
        Effect.result(deepBatch(chain, range, range.routing)).pipe(
          Effect.provideService(Turn, Deferred.await(range.turn)),
          Effect.map((batch) => ({ batch, next: range.next })),
        ),
      { concurrency: AHEAD },
    ),
    // Whoever takes a batch lets the next range be parsed.
    Stream.mapEffect(({ batch, next }) => Effect.andThen(Deferred.succeed(next, undefined), Effect.fromResult(batch))),
  )

const openTurn = (): Deferred.Deferred<void> => {
  const turn = Deferred.makeUnsafe<void>()
  Deferred.doneUnsafe(turn, Effect.void)
  return turn
}

const nextRange = Effect.fnUntraced(function* (
  providers: Providers,
  span: Span,
  { from, turn }: { readonly from: number; readonly turn: Deferred.Deferred<void> },
  routing: Effect.Effect<Routing>,
) {
  const { range } = yield* providers.preferred
  const to = Math.min(span.to, from + range.blocks - 1)
  const next = yield* Deferred.make<void>()
  const ahead = { from, to, after: span.after, routing: yield* routing, turn, next }
  return [ahead, { from: to + 1, turn: next }] as const
})

const deepBatch = Effect.fnUntraced(function* (chain: Chain, { from, to, after }: Span, routing: Routing) {
  const { logs, timestamps, end } = yield* chain.logsBetween(from, to, routing)
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
