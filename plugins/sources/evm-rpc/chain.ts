import { Effect, Result } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import { blockByNumber, headerAt, headerOfTag, headersInRange, latestHeader } from "./block-reads.ts"
import { type Block, blocksOfHeaders } from "./blocks.ts"
import { blocksInDoubt, joinLogs } from "./doubt.ts"
import type { Header } from "./header.ts"
import { callsForBlock, logsOfBlocks, logsOfRange, type RangeOfLogs, readBlockLogs } from "./log-reads.ts"
import type { LogRouting } from "./log-routing.ts"
import type { Log } from "./logs.ts"
import { type Range, type RangeContents, readRange } from "./range-reads.ts"
import { type Receipts, receiptsOf, type TransactionsOfBlock } from "./receipts.ts"
import type { Routing } from "./routing.ts"
import type { Answer } from "./rpc/client.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import { noteHead, type Provider, type Providers } from "./rpc/providers.ts"

type Reading<A> = Effect.Effect<A, RpcFailure | SourceRefused>

/** A block that is likely the next one to be read. */
export interface ExpectedBlock {
  readonly number: number
  readonly hash: string
  readonly routing: Routing
}

/** Logs of one block that came before it was known that the block is to be read. */
export interface KnownLogs {
  readonly hash: string
  readonly routing: Routing
  readonly logs: ReadonlyArray<Log>
  readonly by: Provider
}

/** Logs of blocks, and who answered them first; null if no logs are wanted. */
export interface BlockLogs {
  readonly logs: ReadonlyArray<Log>
  readonly by: Provider | null
}

/** The head of the chain, as one provider tells it. */
export interface Head {
  readonly latest: Header
  readonly others: ReadonlyArray<Header | null>
  readonly by: Provider
  readonly known: KnownLogs | null
}

/** Reads blocks and logs from whichever provider serves them. Every answer is checked. */
export interface Chain {
  /**
   * The newest block and those behind `tags` (null for one that no node knows at present), and who answered. The logs of
   * the block that is `expected` to be read next come along, if the node has it.
   */
  readonly tagged: (tags: ReadonlyArray<string>, expected?: ExpectedBlock) => Reading<Head>
  /** The newest block of one provider, and its blocks of these numbers; null for those that it lacks. */
  readonly headersOn: (
    provider: Provider,
    numbers: ReadonlyArray<number>,
  ) => Effect.Effect<{ readonly latest: Header; readonly headers: ReadonlyArray<Header | null> }, RpcFailure>
  /** The blocks `from` to `to`, each the parent of the next. Fails if a provider does not have them all. */
  readonly headers: (from: number, to: number) => Reading<ReadonlyArray<Header>>
  /** The logs of exactly these blocks, with doubts about missing ones cleared up. What is `known` is not asked for. */
  readonly logsOf: (headers: ReadonlyArray<Header>, routing: LogRouting, known: KnownLogs | null) => Reading<BlockLogs>
  /**
   * What `routing` needs of a range that no reorganisation is expected to reach, from one provider.
   *
   * @param avoid asked last
   */
  readonly range: (range: Range, routing: Routing, avoid: Provider | null) => Reading<RangeContents>
  /** The logs of a range like that of `range`, from `by` if it answers, and who did. */
  readonly logsBetween: (
    range: Range,
    routing: LogRouting,
    by: Provider,
  ) => Reading<RangeOfLogs & { readonly by: Provider }>
  /** What `routing` needs of exactly these blocks beside their logs; none if it needs nothing. */
  readonly blocksOf: (headers: ReadonlyArray<Header>, routing: Routing) => Reading<ReadonlyArray<Block>>
  /** The receipts of transactions of these blocks. */
  readonly receiptsOf: (blocks: ReadonlyArray<TransactionsOfBlock>) => Reading<Receipts>
}

/** A block whose bloom contradicts its logs is asked for again so often. */
const DOUBT_RETRIES = 2

/** Whether the tags are better asked of another provider than this one, which lacks some. */
const mayKnowTags = (other: Provider, lacking: Provider) =>
  other !== lacking && other.knowsTags && !other.health.benched

/** Null also for logs that cannot be used: they are asked for again in their turn. */
const readExpected = (provider: Provider, expected: ExpectedBlock, answers: ReadonlyArray<Answer>) =>
  readBlockLogs(provider, answers, expected).pipe(
    Effect.map((logs): KnownLogs => ({ hash: expected.hash, routing: expected.routing, logs, by: provider })),
    Effect.orElseSucceed(() => null),
  )

/** Makes the reader of a chain. */
export const makeChain = (providers: Providers): Chain => {
  const tagged: Chain["tagged"] = (tags, expected) =>
    providers.use(
      Effect.fnUntraced(function* (provider) {
        const wanted = provider.logsByHash ? expected : undefined
        const heads = ["latest", ...tags].map(blockByNumber)
        const logs = wanted === undefined ? [] : callsForBlock(wanted.hash, wanted.routing.logs.filters)
        const answers = yield* provider.client.batch([...heads, ...logs])
        const latest = yield* latestHeader(provider, answers[0]!)
        const others = yield* Effect.forEach(answers.slice(1, heads.length), (answer) =>
          headerOfTag(provider, answer).pipe(
            Effect.catchIf(
              // what some nodes answer to a tag that they do not know
              ({ kind }) => kind === "refused" || kind === "unsupported" || kind === "missing",
              () => Effect.succeed(null),
            ),
          ),
        )
        yield* noteHead(provider, latest.number)
        provider.knowsTags = !others.includes(null)
        if (!provider.knowsTags && providers.list.some((other) => mayKnowTags(other, provider)))
          return yield* provider.client.failure("unsupported", `the node does not know "${tags.join('", "')}"`)
        const known =
          wanted === undefined || logs.length === 0
            ? null
            : yield* readExpected(provider, wanted, answers.slice(heads.length))
        return { latest, others, by: provider, known }
      }),
      { tags: true },
    )

  const headersOn: Chain["headersOn"] = Effect.fnUntraced(function* (provider, numbers) {
    const answers = yield* provider.client.batch(["latest", ...numbers].map(blockByNumber))
    const latest = yield* latestHeader(provider, answers[0]!)
    yield* noteHead(provider, latest.number)
    const headers = yield* Effect.forEach(numbers, (number, i) =>
      headerAt(provider, answers[i + 1]!, number).pipe(
        Effect.catchIf(
          ({ kind }) => kind === "missing",
          () => Effect.succeed(null),
        ),
      ),
    )
    return { latest, headers }
  })

  const headers: Chain["headers"] = (from, to) =>
    providers.use((provider) => headersInRange(provider, from, to), { from })

  const logsOf: Chain["logsOf"] = Effect.fnUntraced(function* (blocks, routing, known) {
    const { filters } = routing
    if (filters.length === 0) return { logs: [], by: null }
    /** Those that were asked, in this order. */
    const asked = new Set(known === null ? [] : [known.by])
    const ask = (wanted: ReadonlyArray<Header>) =>
      providers.use(
        Effect.fnUntraced(function* (provider) {
          const logs = yield* logsOfBlocks(provider, wanted, filters)
          asked.add(provider)
          return logs
        }),
        { from: wanted[0]!.number, avoid: asked },
      )
    let logs = known?.logs ?? (yield* ask(blocks))
    const [first = null] = asked
    for (let i = 0; i < DOUBT_RETRIES; i++) {
      const doubtful = blocksInDoubt(blocks, logs, routing)
      if (doubtful.length === 0) break
      const again = yield* Effect.result(ask(doubtful))
      if (Result.isSuccess(again)) logs = joinLogs(logs, again.success)
    }
    return { logs, by: first }
  })

  const range: Chain["range"] = ({ from, to }, routing, avoid) =>
    providers.use((provider) => readRange(provider, { from, to }, routing), {
      from,
      ...(avoid === null ? {} : { avoid: new Set([avoid]) }),
    })

  const logsBetween: Chain["logsBetween"] = ({ from, to }, { filters }, by) =>
    providers.use(
      (provider) => Effect.map(logsOfRange(provider, from, to, filters, null), (read) => ({ ...read, by: provider })),
      { from, avoid: new Set(providers.list.filter((provider) => provider !== by)) },
    )

  const blocksOf: Chain["blocksOf"] = (headers, routing) => {
    if (routing.need === "nothing") return Effect.succeed([])
    if (routing.need === "headers")
      return Effect.succeed(headers.map((header) => ({ header, transactions: [], candidates: [] })))
    return providers.use((provider) => blocksOfHeaders(provider, headers, routing.transactions), {
      from: headers[0]!.number,
    })
  }

  const receipts: Chain["receiptsOf"] = (blocks) =>
    providers.use((provider) => receiptsOf(provider, blocks), { from: blocks[0]!.header.number })

  return { tagged, headersOn, headers, logsOf, range, logsBetween, blocksOf, receiptsOf: receipts }
}
