import { Effect, type Tracer } from "effect"
import { compareCursors, type Cursor, endOf } from "../../../core/model/cursor.ts"
import type { Anchor, SourceBatch, SourceEvent } from "../../../core/plugin/source.ts"
import type { ReadRange } from "./ahead.ts"
import { blockEvents } from "./block-events.ts"
import type { Block } from "./blocks.ts"
import type { Chain, KnownLogs } from "./chain.ts"
import { toEvents } from "./events.ts"
import { followCalls } from "./factory-calls.ts"
import { followBlocks, followRange } from "./factory-reads.ts"
import type { Header } from "./header.ts"
import type { Log } from "./logs.ts"
import { timestampsOf } from "./range-reads.ts"
import { inReadSpan } from "./read-span.ts"
import type { Routing } from "./routing.ts"
import { unbounded } from "./rpc/allowance.ts"
import type { Provider } from "./rpc/providers.ts"

/** A batch, and whom its logs came from; null if that was nobody, or several. */
export interface ReadBatch {
  readonly batch: SourceBatch
  readonly by: Provider | null
  readonly routing: Routing
  /** In which it was read, if anybody reads spans. */
  readonly span: Tracer.Span | null
}

/**
 * The batch of a range far from the head that begins at `from`. Of its blocks only some hashes are known: from `keptFrom`
 * on they are kept, so that what was told of a fork is known for it also where the feed goes back into the range.
 */
export const deepBatch = Effect.fnUntraced(function* (
  chain: Chain,
  { routing, contents, span }: ReadRange,
  from: number,
  after: Cursor,
  keptFrom = Number.POSITIVE_INFINITY,
) {
  const { logs, timestamps, end, by, records } = yield* followRange(chain, routing.logs, from, contents)
  const blocks = yield* followCalls(chain, routing.transactions, contents.blocks)
  const batch: SourceBatch = {
    events: inOrder(
      blockEvents(blocks, routing.blocks, after),
      toEvents(logs, routing.logs, (block) => timestamps.get(block)!, after),
    ),
    upTo: endOf(end.number),
    resume: hashesFrom(keptFrom, blocks, logs, end),
    interests: routing.version,
    records,
    pending: routing.pending,
  }
  const read: ReadBatch = { batch, by, routing, span }
  return read
})

/** The hashes of the blocks from `first` on, as far as they are known; that of `end` in any case. */
const hashesFrom = (
  first: number,
  blocks: ReadonlyArray<Block>,
  logs: ReadonlyArray<Log>,
  end: Header,
): ReadonlyArray<Anchor> => {
  const hashes = new Map<number, string>()
  if (end.number >= first) {
    for (const { header } of blocks) hashes.set(header.number, header.hash)
    for (const { block, blockHash } of logs) hashes.set(block, blockHash)
  }
  hashes.set(end.number, end.hash)
  return [...hashes]
    .filter(([primary]) => primary >= first || primary === end.number)
    .map(([primary, hash]) => ({ primary, hash }))
    .toSorted((a, b) => a.primary - b.primary)
}

/** Two lists in the order of their cursors as one. */
const inOrder = (a: ReadonlyArray<SourceEvent>, b: ReadonlyArray<SourceEvent>): ReadonlyArray<SourceEvent> => {
  if (a.length === 0) return b
  if (b.length === 0) return a
  return [...a, ...b].toSorted((x, y) => compareCursors(x.cursor, y.cursor))
}

/** Reads what is wanted of blocks near the head, each by its hash. `known` are the logs of the only one, if they came. */
export const nearBatch = (
  chain: Chain,
  headers: ReadonlyArray<Header>,
  routing: Routing,
  after: Cursor,
  known: KnownLogs | null = null,
) => {
  const range = { from: headers[0]!.number, to: headers.at(-1)!.number }
  return inReadSpan(range, unbounded(), (span) =>
    Effect.map(readNear(chain, headers, routing, after, known), (read): ReadBatch => ({ ...read, span })),
  )
}

const readNear = Effect.fnUntraced(function* (
  chain: Chain,
  headers: ReadonlyArray<Header>,
  routing: Routing,
  after: Cursor,
  known: KnownLogs | null,
) {
  const timestamps = yield* timestampsOf(headers)
  const [first, read] = yield* Effect.all(
    [chain.logsOf(headers, routing.logs, known), chain.blocksOf(headers, routing)],
    { concurrency: 2 },
  )
  const { logs, by, records } = yield* followBlocks(chain, routing.logs, headers, first)
  const blocks = yield* followCalls(chain, routing.transactions, read)
  const batch: SourceBatch = {
    events: inOrder(
      blockEvents(blocks, routing.blocks, after),
      toEvents(logs, routing.logs, (block) => timestamps.get(block)!, after),
    ),
    upTo: endOf(headers.at(-1)!.number),
    resume: headers.map(({ number, hash }) => ({ primary: number, hash })),
    interests: routing.version,
    records,
    pending: routing.pending,
  }
  return { batch, by, routing }
})
