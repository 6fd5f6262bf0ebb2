import { Effect, type Result, Stream } from "effect"
import { compareCursors, type Cursor, endOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceBatch, SourceEvent } from "../../../core/plugin/source.ts"
import { blockEvents } from "./block-events.ts"
import type { Block } from "./blocks.ts"
import type { Chain, KnownLogs } from "./chain.ts"
import { toEvents } from "./events.ts"
import type { Header } from "./header.ts"
import type { Asked } from "./log-reads.ts"
import type { Log } from "./logs.ts"
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
    Stream.mapEffect((range) => askAhead(chain, range), { concurrency: AHEAD }),
    // Whoever was given the batch before has a turn before the next one is parsed.
    Stream.mapEffect((range) => Effect.andThen(Effect.yieldNow, deepBatch(chain, range))),
  )

/** Blocks that are read at once where more than their logs is needed. */
const BLOCKS_AT_ONCE = { nothing: Number.POSITIVE_INFINITY, headers: 100, transactions: 32 } as const

const nextRange = Effect.fnUntraced(function* (
  providers: Providers,
  span: Span,
  from: number,
  routing: Effect.Effect<Routing>,
) {
  const { range } = yield* providers.preferred
  const current = yield* routing
  const to = Math.min(span.to, from + Math.min(range.blocks, BLOCKS_AT_ONCE[current.need]) - 1)
  return [{ from, to, after: span.after, routing: current }, to + 1] as const
})

interface AskedRange extends Span {
  readonly routing: Routing
  readonly asked: Asked | null
  readonly blocks: Result.Result<ReadonlyArray<Block>, RpcFailure | SourceRefused>
}

/** Asks for the logs of a range, whose answer stays bytes, and reads what is needed of its blocks. */
const askAhead = (chain: Chain, range: Span & { readonly routing: Routing }): Effect.Effect<AskedRange> =>
  Effect.map(
    Effect.all(
      [
        needsLogs(range.routing) ? chain.askAhead(range.from, range.to, range.routing) : Effect.succeed(null),
        Effect.result(chain.blocksBetween(range.from, range.to, range.routing)),
      ],
      { concurrency: 2 },
    ),
    ([asked, blocks]) => ({ ...range, asked, blocks }),
  )

/** The last block of a range comes with its logs; where all its blocks are read, nobody asks for logs that nobody wants. */
const needsLogs = ({ logs, need }: Routing): boolean => logs.filters.length > 0 || need === "nothing"

const deepBatch = Effect.fnUntraced(function* (chain: Chain, { from, to, after, routing, asked, blocks }: AskedRange) {
  const read = yield* Effect.fromResult(blocks)
  const { logs, timestamps, end } = needsLogs(routing)
    ? yield* chain.logsBetween(from, to, routing, asked)
    : { logs: [], timestamps: new Map<number, number>(), end: read.at(-1)!.header }
  yield* agree(read, logs, end)
  const batch: SourceBatch = {
    events: inOrder(
      blockEvents(read, routing.blocks, after),
      toEvents(logs, routing.logs, (block) => timestamps.get(block)!, after),
    ),
    upTo: endOf(to),
    resume: [{ primary: to, hash: end.hash }],
    interests: routing.version,
  }
  return batch
})

/** Blocks and logs may come from different nodes: they must be of one chain, and the blocks must have timestamps. */
const agree = Effect.fnUntraced(function* (
  blocks: ReadonlyArray<Block>,
  logs: ReadonlyArray<Log>,
  end: Header,
): Effect.fn.Return<void, RpcFailure> {
  if (blocks.length === 0) return
  yield* timestampsOf(blocks.map(({ header }) => header))
  const hashes = new Map(blocks.map(({ header }) => [header.number, header.hash]))
  const other = [{ block: end.number, blockHash: end.hash }, ...logs].find(
    ({ block, blockHash }) => hashes.get(block) !== blockHash,
  )
  if (other !== undefined)
    return yield* new RpcFailure({
      kind: "missing",
      reason: `the logs of block ${other.block} belong to another block of that number; the chain changed while it was read`,
    })
})

const timestampsOf = Effect.fnUntraced(function* (
  headers: ReadonlyArray<Header>,
): Effect.fn.Return<ReadonlyMap<number, number>, RpcFailure> {
  const timestamps = new Map<number, number>()
  for (const { number, timestamp } of headers) {
    if (timestamp === null)
      return yield* new RpcFailure({ kind: "malformed", reason: `block ${number} was answered without a timestamp` })
    timestamps.set(number, timestamp)
  }
  return timestamps
})

/** Two lists in the order of their cursors as one. */
const inOrder = (a: ReadonlyArray<SourceEvent>, b: ReadonlyArray<SourceEvent>): ReadonlyArray<SourceEvent> => {
  if (a.length === 0) return b
  if (b.length === 0) return a
  return [...a, ...b].toSorted((x, y) => compareCursors(x.cursor, y.cursor))
}

/** Reads what is wanted of blocks near the head, each by its hash. `known` are the logs of the only one, if they came. */
export const nearBatch = Effect.fnUntraced(function* (
  chain: Chain,
  headers: ReadonlyArray<Header>,
  routing: Routing,
  after: Cursor,
  known: KnownLogs | null = null,
) {
  const timestamps = yield* timestampsOf(headers)
  const [logs, blocks] = yield* Effect.all([chain.logsOf(headers, routing, known), chain.blocksOf(headers, routing)], {
    concurrency: 2,
  })
  const batch: SourceBatch = {
    events: inOrder(
      blockEvents(blocks, routing.blocks, after),
      toEvents(logs, routing.logs, (block) => timestamps.get(block)!, after),
    ),
    upTo: endOf(headers.at(-1)!.number),
    resume: headers.map(({ number, hash }) => ({ primary: number, hash })),
    interests: routing.version,
  }
  return batch
})
