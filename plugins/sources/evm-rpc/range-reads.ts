import { Effect } from "effect"
import type { Anchor } from "../../../core/plugin/source.ts"
import { headersInRange } from "./block-reads.ts"
import { type Block, blocksInRange } from "./blocks.ts"
import type { Header } from "./header.ts"
import { askForRange, logsOfRange, type RangeOfLogs } from "./log-reads.ts"
import type { Log } from "./logs.ts"
import type { Routing } from "./routing.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"

/** The blocks `from` to `to`, both included. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** What the interests need of a range, all from one provider. */
export interface RangeContents extends RangeOfLogs {
  /** What is needed of its blocks beside their logs, each the parent of the next; none if nothing is. */
  readonly blocks: ReadonlyArray<Block>
  readonly by: Provider
}

/** The last block of a range comes with its logs; where all its blocks are read, nobody asks for logs that nobody wants. */
const needsLogs = ({ logs, need }: Routing): boolean => logs.filters.length > 0 || need === "nothing"

const NO_LOGS: ReadonlyArray<Log> = []

const readBlocks = (
  provider: Provider,
  { from, to }: Range,
  routing: Routing,
): Effect.Effect<ReadonlyArray<Block>, RpcFailure> => {
  if (routing.need === "nothing") return Effect.succeed([])
  if (routing.need === "transactions") return blocksInRange(provider, from, to, routing.transactions)
  return Effect.map(headersInRange(provider, from, to), (headers) =>
    headers.map((header) => ({ header, transactions: [], candidates: [] })),
  )
}

const contentsOf = Effect.fnUntraced(function* (
  by: Provider,
  blocks: ReadonlyArray<Block>,
  read: RangeOfLogs | null,
): Effect.fn.Return<RangeContents, RpcFailure> {
  const { logs, timestamps, end, parentHash } = read ?? {
    logs: NO_LOGS,
    timestamps: new Map<number, number>(),
    end: blocks.at(-1)!.header,
    parentHash: blocks[0]!.header.parentHash,
  }
  yield* agree(blocks, logs, end)
  return { logs, timestamps, end, parentHash, blocks, by }
})

/** Reads a range of one provider. Fails if the provider does not have it whole. */
export const readRange = Effect.fnUntraced(function* (
  provider: Provider,
  range: Range,
  routing: Routing,
): Effect.fn.Return<RangeContents, RpcFailure> {
  const [read, blocks] = yield* Effect.all(
    [
      needsLogs(routing)
        ? logsOfRange(provider, range.from, range.to, routing.logs.filters, null)
        : Effect.succeed(null),
      readBlocks(provider, range, routing),
    ],
    { concurrency: 2 },
  )
  return yield* contentsOf(provider, blocks, read)
})

/**
 * Asks one provider for a range. A long answer with logs stays bytes until the effect that comes back is run: what is
 * parsed then is dropped again before the garbage collector copies it.
 *
 * @param isLong whether what came is long, asked when it is there
 */
export const readRangeAhead = Effect.fnUntraced(function* (
  provider: Provider,
  range: Range,
  routing: Routing,
  isLong: () => boolean,
): Effect.fn.Return<Effect.Effect<RangeContents, RpcFailure>, RpcFailure> {
  const { from, to } = range
  const { filters } = routing.logs
  const readLogs = Effect.gen(function* () {
    if (!needsLogs(routing)) return Effect.succeed(null)
    const asked = yield* askForRange(provider, from, to, filters)
    const read = logsOfRange(provider, from, to, filters, asked)
    return isLong() ? read : Effect.succeed(yield* read)
  })
  const [logs, blocks] = yield* Effect.all([readLogs, readBlocks(provider, range, routing)], { concurrency: 2 })
  return Effect.flatMap(logs, (read) => contentsOf(provider, blocks, read))
})

/** Blocks and logs may come from different machines of a provider: they must be of one chain, and blocks have timestamps. */
export const agree = Effect.fnUntraced(function* (
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

/** Fails if what is read next does not go on from the last block that was read. */
export const goesOn = (last: Anchor | undefined, parentHash: string): Effect.Effect<void, RpcFailure> =>
  last === undefined || last.hash === parentHash
    ? Effect.void
    : Effect.fail(
        new RpcFailure({
          kind: "missing",
          reason: `the chain replaced block ${last.primary} by another one while it was read; read the range again`,
        }),
      )

/** The timestamps of blocks. Fails if one lacks it. */
export const timestampsOf = Effect.fnUntraced(function* (
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
