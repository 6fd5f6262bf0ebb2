import { Effect, Metric, Result } from "effect"
import { blockByNumber, changed, headerAt, lacks } from "./block-reads.ts"
import type { Header } from "./header.ts"
import type { LogFilter } from "./log-filter.ts"
import { joinAnswers, type Log, readLogs } from "./logs.ts"
import type { Answer, Call, Unread } from "./rpc/client.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import { adaptRange, shrinkRange } from "./rpc/range.ts"
import { toQuantity } from "./wire.ts"

const getLogs = (filter: LogFilter, where: Readonly<Record<string, string>>): Call => ({
  method: "eth_getLogs",
  params: [
    {
      ...where,
      ...(filter.address === null ? {} : { address: filter.address }),
      ...(filter.topics.length === 0 ? {} : { topics: filter.topics }),
    },
  ],
})

const duplicates = Metric.counter("blockwatcher_rpc_duplicate_logs_total", {
  description: "Logs that a node answered twice; the repeats were dropped",
  incremental: true,
})

/** Reads the answer of `eth_getLogs`, and counts the repeats in it. */
const readAnswer = Effect.fnUntraced(function* (provider: Provider, raw: unknown, from: number, to: number) {
  const read = yield* provider.client.read(() => readLogs(raw, from, to))
  if (read.duplicates > 0)
    yield* Metric.update(Metric.withAttributes(duplicates, { node: provider.client.label }), read.duplicates)
  return read.logs
})

/** Reads the answers of one piece of the chain, one for each filter. */
const readAnswers = Effect.fnUntraced(function* (
  provider: Provider,
  answers: ReadonlyArray<Answer>,
  from: number,
  to: number,
) {
  const lists: Array<ReadonlyArray<Log>> = []
  for (const answer of answers) lists.push(yield* readAnswer(provider, yield* Effect.fromResult(answer), from, to))
  return lists.length === 1 ? lists[0]! : yield* provider.client.read(() => joinAnswers(lists))
})

const checkHash = (
  provider: Provider,
  log: Log,
  block: Pick<Header, "number" | "hash">,
): Effect.Effect<void, RpcFailure> =>
  log.blockHash === block.hash
    ? Effect.void
    : Effect.fail(changed(provider, `the logs of block ${log.block} belong to another block of that number`))

/** The calls for the logs of one block. */
export const callsForBlock = (hash: string, filters: ReadonlyArray<LogFilter>): ReadonlyArray<Call> =>
  filters.map((filter) => getLogs(filter, { blockHash: hash }))

/** Reads the answers to the calls for the logs of a block. */
export const readBlockLogs = Effect.fnUntraced(function* (
  provider: Provider,
  answers: ReadonlyArray<Answer>,
  block: Pick<Header, "number" | "hash">,
) {
  const logs = yield* readAnswers(provider, answers, block.number, block.number)
  for (const log of logs) yield* checkHash(provider, log, block)
  return logs
})

/** The logs of exactly these blocks, which follow each other. */
export const logsOfBlocks = Effect.fnUntraced(function* (
  provider: Provider,
  blocks: ReadonlyArray<Header>,
  filters: ReadonlyArray<LogFilter>,
): Effect.fn.Return<ReadonlyArray<Log>, RpcFailure> {
  if (!provider.logsByHash) return yield* logsByRange(provider, blocks, filters)
  return yield* logsByHash(provider, blocks, filters).pipe(
    Effect.catchIf(
      (failure: RpcFailure) => failure.kind === "refused" || failure.kind === "unsupported",
      () =>
        Effect.tap(logsByRange(provider, blocks, filters), () => {
          provider.logsByHash = false
          return Effect.void
        }),
    ),
  )
})

const logsByHash = Effect.fnUntraced(function* (
  provider: Provider,
  blocks: ReadonlyArray<Header>,
  filters: ReadonlyArray<LogFilter>,
): Effect.fn.Return<ReadonlyArray<Log>, RpcFailure> {
  const answers = yield* provider.client.batch(blocks.flatMap(({ hash }) => callsForBlock(hash, filters)))
  const logs: Array<Log> = []
  for (const [i, block] of blocks.entries()) {
    const own = answers.slice(i * filters.length, (i + 1) * filters.length)
    for (const log of yield* readBlockLogs(provider, own, block)) logs.push(log)
  }
  return logs
})

/** For nodes that take no block hash: the node must have the wanted blocks before and after it answers. */
const logsByRange = Effect.fnUntraced(function* (
  provider: Provider,
  blocks: ReadonlyArray<Header>,
  filters: ReadonlyArray<LogFilter>,
): Effect.fn.Return<ReadonlyArray<Log>, RpcFailure> {
  const wanted = new Map(blocks.map((block) => [block.number, block]))
  const [first, last] = [blocks[0]!.number, blocks.at(-1)!.number]
  const hasBlocks = Effect.gen(function* () {
    const answers = yield* provider.client.batch(blocks.map(({ number }) => blockByNumber(number)))
    for (const [i, { number, hash }] of blocks.entries()) {
      const block = yield* headerAt(provider, answers[i]!, number)
      if (block?.hash !== hash) return yield* changed(provider, `the node has another block ${number}`)
    }
  })
  yield* hasBlocks
  const { logs } = yield* logsInPieces(provider, first, last, filters, [], null)
  yield* hasBlocks
  const kept: Array<Log> = []
  for (const log of logs) {
    const block = wanted.get(log.block)
    if (block === undefined) continue
    yield* checkHash(provider, log, block)
    kept.push(log)
  }
  return kept
})

/** A piece of a range that was asked for. */
export interface Asked {
  readonly provider: Provider
  /** The last block of the piece. */
  readonly end: number
  readonly unread: Unread
}

/** Asks for as much of a range as the provider wants; the calls `last` go along with the last piece. */
const askForPiece = (
  provider: Provider,
  from: number,
  to: number,
  filters: ReadonlyArray<LogFilter>,
  last: ReadonlyArray<Call>,
): Effect.Effect<Asked> => {
  const end = Math.min(to, from + provider.range.blocks - 1)
  const where = { fromBlock: toQuantity(from), toBlock: toQuantity(end) }
  const logs = filters.map((filter) => getLogs(filter, where))
  const unread = provider.client.ask(end === to ? [...logs, ...last] : logs)
  return Effect.map(unread, (unread) => ({ provider, end, unread }))
}

/**
 * The logs of a range, asked for in as many pieces as the provider wants. The calls `last` go along with the last
 * piece; their answers come back as `more`.
 *
 * @param asked the first piece, if it was asked for already
 */
const logsInPieces = Effect.fnUntraced(function* (
  provider: Provider,
  from: number,
  to: number,
  filters: ReadonlyArray<LogFilter>,
  last: ReadonlyArray<Call>,
  asked: Asked | null,
): Effect.fn.Return<{ readonly logs: ReadonlyArray<Log>; readonly more: ReadonlyArray<Answer> }, RpcFailure> {
  const pieces: Array<ReadonlyArray<Log>> = []
  let more: ReadonlyArray<Answer> = []
  let ahead = asked
  for (let at = from; at <= to;) {
    const { end, unread } = ahead ?? (yield* askForPiece(provider, at, to, filters, last))
    ahead = null
    const blocks = end - at + 1
    const answers = yield* unread
    const failed = answers.slice(0, filters.length).find(Result.isFailure)
    if (failed !== undefined) {
      const { failure } = failed
      const tooMuch = failure.kind === "range" || failure.kind === "too-many"
      if (!tooMuch || blocks === 1) return yield* failure
      provider.range = shrinkRange(provider.range, at, blocks, failure)
      continue
    }
    const logs = yield* readAnswers(provider, answers.slice(0, filters.length), at, end)
    provider.range = adaptRange(provider.range, blocks, logs.length)
    pieces.push(logs)
    more = answers.slice(filters.length)
    at = end + 1
  }
  return { logs: pieces.length === 1 ? pieces[0]! : pieces.flat(), more }
})

/** The logs of a closed range of blocks, with what the events of them need. */
export interface RangeOfLogs {
  readonly logs: ReadonlyArray<Log>
  /** Timestamps of blocks whose logs do not tell it. */
  readonly timestamps: ReadonlyMap<number, number>
  /** The last block of the range. */
  readonly end: Header
  /** Of the first block: what the range goes on from. */
  readonly parentHash: string
}

/** The blocks of a range that come with its logs: the last one, and the first one. */
const endsOf = (from: number, to: number): ReadonlyArray<Call> => (from === to ? [to] : [to, from]).map(blockByNumber)

/** Asks for what `logsOfRange` reads first. */
export const askForRange = (
  provider: Provider,
  from: number,
  to: number,
  filters: ReadonlyArray<LogFilter>,
): Effect.Effect<Asked> => {
  const last = endsOf(from, to)
  return filters.length === 0
    ? Effect.map(provider.client.ask(last), (unread) => ({ provider, end: to, unread }))
    : askForPiece(provider, from, to, filters, last)
}

/**
 * The logs of a range that the provider has whole; without filters, its first and last block only.
 *
 * @param asked what `askForRange` asked of the provider; null to ask now
 */
export const logsOfRange = Effect.fnUntraced(function* (
  provider: Provider,
  from: number,
  to: number,
  filters: ReadonlyArray<LogFilter>,
  asked: Asked | null,
): Effect.fn.Return<RangeOfLogs, RpcFailure> {
  const ahead = asked ?? (yield* askForRange(provider, from, to, filters))
  const { logs, more } =
    filters.length === 0
      ? { logs: [], more: yield* ahead.unread }
      : yield* logsInPieces(provider, from, to, filters, endsOf(from, to), ahead)
  const end = yield* headerAt(provider, more[0]!, to)
  // a node that lacks the last block answers the range as far as it has it
  if (end === null) return yield* lacks(provider, to)
  const begin = from === to ? end : yield* headerAt(provider, more[1]!, from)
  if (begin === null) return yield* lacks(provider, from)
  const [first, last] = [logs[0], logs.at(-1)]
  if (first?.block === from) yield* checkHash(provider, first, begin)
  if (last?.block === to) yield* checkHash(provider, last, end)
  const timestamps = yield* timestampsOf(provider, logs, [begin, end])
  return { logs, timestamps, end, parentHash: begin.parentHash }
})

const timestampsOf = Effect.fnUntraced(function* (
  provider: Provider,
  logs: ReadonlyArray<Log>,
  known: ReadonlyArray<Header>,
) {
  const untimed = new Map<number, Log>()
  for (const log of logs) if (log.timestamp === null) untimed.set(log.block, log)
  const timestamps = new Map<number, number>()
  const headers = new Map(known.map((header) => [header.number, header]))
  const numbers = [...untimed.keys()].filter((number) => !headers.has(number))
  const answers = yield* provider.client.batch(numbers.map(blockByNumber))
  for (const [i, number] of numbers.entries()) {
    const block = yield* headerAt(provider, answers[i]!, number)
    if (block === null) return yield* lacks(provider, number)
    headers.set(number, block)
  }
  for (const [number, log] of untimed) {
    const block = headers.get(number)!
    yield* checkHash(provider, log, block)
    if (block.timestamp === null) return yield* provider.client.failure("malformed", `block ${number} has no timestamp`)
    timestamps.set(number, block.timestamp)
  }
  return timestamps
})
