import { Effect, Metric } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceRecord } from "../../../core/plugin/source.ts"
import type { BlockLogs, Chain } from "./chain.ts"
import { undecodableCreations } from "./creations.ts"
import type { Header } from "./header.ts"
import type { LogRouting } from "./log-routing.ts"
import { joinAnswers, type Log } from "./logs.ts"
import { agree, type RangeContents } from "./range-reads.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import { MalformedAnswer } from "./wire.ts"

/** What the logs tell of new contracts, to be recorded with them, and who answered the logs; null for several. */
interface Followed {
  readonly records: ReadonlyArray<SourceRecord>
  readonly by: Provider | null
}

/** Takes up the contracts that the logs tell of. To be called in the order of the chain. */
const discover = Effect.fnUntraced(function* (routing: LogRouting, logs: ReadonlyArray<Log>) {
  if (routing.creations === null) return []
  const { records, undecodable } = routing.creations.discover(logs)
  if (undecodable > 0) {
    yield* Metric.update(undecodableCreations, undecodable)
    yield* Effect.logWarning(`${undecodable} logs of factories tell of no contract and were skipped`)
  }
  return records
})

const changed = (what: string) =>
  new RpcFailure({ kind: "missing", reason: `${what}; the chain changed while it was read` })

const join = (logs: ReadonlyArray<Log>, more: ReadonlyArray<Log>) =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(joinAnswers([logs, more]))
    } catch (error) {
      if (!(error instanceof MalformedAnswer)) throw error
      return Effect.fail(changed(error.message))
    }
  })

/**
 * Adds to what a range holds, which begins at `from`, the logs of the contracts that were made since it was asked for: in
 * it, or in ranges before it that were asked for ahead. Answers what is to be recorded of them as well.
 */
export const followRange = Effect.fnUntraced(function* (
  chain: Chain,
  routing: LogRouting,
  from: number,
  contents: RangeContents,
): Effect.fn.Return<Omit<RangeContents, "by"> & Followed, RpcFailure | SourceRefused> {
  const { end, by } = contents
  const records = yield* discover(routing, contents.logs)
  const { unasked } = routing
  if (unasked === null) return { ...contents, records }
  const range = { from: Math.max(from, routing.firstUnasked), to: end.number }
  const more = yield* chain.logsBetween(range, unasked, by)
  if (more.end.hash !== end.hash) return yield* changed(`there are two blocks ${end.number}`)
  yield* agree(contents.blocks, more.logs, end)
  return {
    ...contents,
    logs: yield* join(contents.logs, more.logs),
    timestamps: new Map([...contents.timestamps, ...more.timestamps]),
    by: more.by === by ? by : null,
    records,
  }
})

/** The same for blocks near the head. */
export const followBlocks = Effect.fnUntraced(function* (
  chain: Chain,
  routing: LogRouting,
  headers: ReadonlyArray<Header>,
  { logs, by }: BlockLogs,
): Effect.fn.Return<BlockLogs & Followed, RpcFailure | SourceRefused> {
  const records = yield* discover(routing, logs)
  const { unasked } = routing
  if (unasked === null) return { logs, by, records }
  const first = routing.firstUnasked
  const blocks = headers.filter(({ number }) => number >= first)
  const more = yield* chain.logsOf(blocks, unasked, null)
  return { logs: yield* join(logs, more.logs), by: more.by === by ? by : null, records }
})
