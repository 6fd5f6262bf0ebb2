import { Effect, Latch, Metric, Result } from "effect"
import type { Cursor } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { Anchor, SourceRecord, SourceRun } from "../../../core/plugin/source.ts"
import { AuditQueue, type Due, type HandedOver, handedOver, handedOverBefore, wasSeen } from "./audit-queue.ts"
import type { ReadBatch } from "./batches.ts"
import { blockByNumber, changed, headerAt, lacks } from "./block-reads.ts"
import type { Config } from "./config.ts"
import { toEvents } from "./events.ts"
import type { Log } from "./logs.ts"
import { logsOfReceipts } from "./receipt-logs.ts"
import type { Routing } from "./routing.ts"
import { waitAfter } from "./rpc/backoff.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"
import type { Selector } from "./selector.ts"

/** Blocks whose receipts are asked for in one request: those of one can be a megabyte. */
const AT_ONCE = 8

/** Requests that are under way at the same time while there is much to compare. */
const REQUESTS = 4

/** Blocks this close to the head are left alone: a node may have a block before it has its receipts. */
const LAG = 3

/** Blocks that no node has as they were handed over are asked for so often. */
const TRIES = 5

const omitted = Metric.counter("blockwatcher_rpc_omitted_logs_total", {
  description: "Logs that a node left out of its answer and that the audit found",
  incremental: true,
})

const unaudited = Metric.counter("blockwatcher_rpc_unaudited_blocks_total", {
  description: "Blocks that were handed over and that the audit could not compare",
  incremental: true,
})

/** What the receipts of blocks hold beyond what was handed over. */
interface Comparison {
  readonly missed: ReadonlyArray<Log>
  readonly timestamps: ReadonlyMap<number, number>
}

/**
 * Compares the logs that were handed over with the receipts of their blocks, and hands over what was left out. It keeps a
 * few blocks behind the head, and is in nobody's way but that of ranges far from the head, which wait for it as long as it
 * makes progress.
 */
export class Audit {
  readonly #providers: Providers
  readonly #config: Config
  readonly #run: SourceRun<Selector>
  readonly #routing: Effect.Effect<Routing>
  readonly #queue = new AuditQueue()
  readonly #arrived = Latch.makeUnsafe(false)
  readonly #room = Latch.makeUnsafe(true)
  /** Contracts of factories that nobody knew of, with the hashes of their blocks, until they are handed over. */
  #made: ReadonlyArray<{ readonly record: SourceRecord; readonly anchor: Anchor }> = []
  #highest = -1
  #failures = 0
  #isOff = false

  constructor(providers: Providers, config: Config, run: SourceRun<Selector>, routing: Effect.Effect<Routing>) {
    this.#providers = providers
    this.#config = config
    this.#run = run
    this.#routing = routing
    const before = handedOverBefore(run.resume.anchors)
    if (before !== null) this.#queue.add(before)
  }

  /** Completes when there is room for more; at once if the audit makes no progress. */
  get room(): Effect.Effect<void> {
    return this.#room.await
  }

  /** The newest block of the chain, which never falls. */
  head(number: number): void {
    this.#highest = number - LAG
    this.#arrived.openUnsafe()
  }

  /** Takes note of a batch that was handed over. */
  add(read: ReadBatch, from: number, after: Cursor): Effect.Effect<void> {
    if (this.#isOff || read.routing.logs.filters.length === 0) return Effect.void
    this.#queue.add(handedOver(read, from, after))
    this.#arrived.openUnsafe()
    if (!this.#queue.isFull) return Effect.void
    if (this.#failures === 0) {
      this.#room.closeUnsafe()
      return Effect.void
    }
    return this.#leaveOut(this.#queue.dropOldest(), "the audit is too far behind")
  }

  /** Compares until no node can be asked any more. */
  readonly compare: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    for (;;) {
      // Blocks that cannot be compared are found one by one.
      const due = this.#queue.next(this.#failures === 0 ? AT_ONCE * REQUESTS : 1, this.#highest)
      if (due === null) {
        this.#arrived.closeUnsafe()
        yield* this.#arrived.await
        continue
      }
      const result = yield* Effect.result(this.#compareBlocks(due))
      if (Result.isSuccess(result)) {
        this.#failures = 0
        this.#queue.advance(due)
        if (!this.#queue.isFull) this.#room.openUnsafe()
        continue
      }
      this.#room.openUnsafe()
      const { failure } = result
      if (this.#withReceipts.length === 0) return yield* this.#turnOff
      this.#failures++
      if (failure._tag === "RpcFailure" && isFinal(failure) && this.#failures >= TRIES) {
        this.#failures = 0
        this.#queue.advance(due)
        yield* this.#leaveOut(due.to - due.from + 1, failure.reason)
        continue
      }
      yield* Effect.sleep(waitAfter(this.#failures, failure._tag === "RpcFailure" ? failure.retryAfterMs : 0))
    }
  })

  /** The nodes that may have receipts. */
  get #withReceipts(): ReadonlyArray<Provider> {
    return this.#providers.list.filter(
      ({ blockReceipts, chainId }) =>
        blockReceipts !== "lacks" && (chainId === null || chainId === this.#config.chain_id),
    )
  }

  get #turnOff(): Effect.Effect<void> {
    const reason = "the audit is off: no node answers eth_getBlockReceipts; add one that does to urls, or remove audit"
    this.#isOff = true
    return Effect.andThen(Effect.logWarning(reason), this.#run.trouble(reason))
  }

  #leaveOut(blocks: number, why: string): Effect.Effect<void> {
    return Effect.andThen(
      Metric.update(unaudited, blocks),
      Effect.logWarning(`the audit leaves out ${blocks} blocks: ${why}`),
    )
  }

  readonly #compareBlocks = Effect.fnUntraced(function* (
    this: Audit,
    due: Due,
  ): Effect.fn.Return<void, RpcFailure | SourceRefused> {
    const { piece } = due
    const routing = yield* this.#routingOf(piece)
    const most = this.#blocksAtOnce
    const groups: Array<Due> = []
    for (let from = due.from; from <= due.to; from += most)
      groups.push({ piece, from, to: Math.min(due.to, from + most - 1) })
    const before = this.#made.length
    const compared = yield* Effect.forEach(groups, (group) => this.#compareOn(group, routing), {
      concurrency: REQUESTS,
    })
    // The logs of contracts that nobody knew of concern someone, too: from their creation on, in these blocks and later ones.
    if (this.#made.length > before) return yield* this.#compareBlocks(due)
    const missed = compared.flatMap((one) => one.missed)
    const made = this.#made
    if (missed.length + made.length === 0) return
    const timestamps = new Map(compared.flatMap((one) => [...one.timestamps]))
    const hashes = new Map(missed.map(({ block, blockHash }) => [block, blockHash]))
    for (const { anchor } of made) hashes.set(anchor.primary, anchor.hash)
    yield* this.#run.late({
      events: toEvents(missed, routing.logs, (block) => timestamps.get(block)!, piece.after),
      resume: [...hashes].map(([primary, hash]) => ({ primary, hash })),
      interests: routing.version,
      records: made.map(({ record }) => record),
    })
    this.#made = []
    if (piece.by !== null && missed.length > 0) yield* this.#accuse(piece.by, missed)
  })

  #routingOf({ routing }: HandedOver): Effect.Effect<Routing> {
    return routing === null ? this.#routing : Effect.succeed(routing)
  }

  /** So few that the other requests of a provider that may be asked seldom need not wait long. */
  get #blocksAtOnce(): number {
    const { requests_per_second: perSecond } = this.#config
    return perSecond === undefined ? AT_ONCE : Math.min(AT_ONCE, Math.max(1, Math.floor(perSecond / 4)))
  }

  /** Asks another provider than the one whose answer is compared, if one is well. */
  #compareOn({ piece, from, to }: Due, routing: Routing): Effect.Effect<Comparison, RpcFailure | SourceRefused> {
    const blocks = { from, to, end: piece.to, hashes: piece.hashes }
    const { by } = piece
    const note = (logs: ReadonlyArray<Log>) => {
      const records = routing.logs.creations?.discoverLate(logs) ?? []
      const made = records.map((record) => {
        const { primary } = record.cursor
        return { record, anchor: { primary, hash: logs.find(({ block }) => block === primary)!.blockHash } }
      })
      this.#made = [...this.#made, ...made]
    }
    const others = this.#withReceipts.some((other) => other !== by && !other.health.benched)
    return this.#providers.use(
      Effect.fnUntraced(function* (provider) {
        const logs = yield* logsOfReceipts(provider, blocks)
        note(logs)
        const missed = logs.filter((log) => !wasSeen(piece, log) && concernsSomeone(log, routing))
        return { missed, timestamps: yield* timestampsOf(provider, missed) }
      }),
      { from, ...(by === null || !others ? {} : { avoid: new Set([by]) }) },
    )
  }

  readonly #accuse = Effect.fnUntraced(function* (this: Audit, by: Provider, missed: ReadonlyArray<Log>) {
    const { label } = by.client
    const { block } = missed[0]!
    yield* Metric.update(Metric.withAttributes(omitted, { node: label }), missed.length)
    const what = `it left out ${missed.length} logs of block ${block}${missed.length === 1 ? "" : " and others"}, which their receipts have`
    yield* this.#providers.list.length > 1
      ? this.#providers.bench(by, what)
      : Effect.logWarning(`${label} is not to be trusted: ${what}`)
  })
}

/** Whether asking again soon is of no use. */
const isFinal = ({ kind }: RpcFailure): boolean => kind !== "quota" && kind !== "overload" && kind !== "unreachable"

const concernsSomeone = (log: Log, { logs }: Routing): boolean =>
  logs.routes(log.topics[0]?.toLowerCase(), log).length > 0

/** Timestamps of blocks whose logs do not tell it. */
const timestampsOf = Effect.fnUntraced(function* (
  provider: Provider,
  logs: ReadonlyArray<Log>,
): Effect.fn.Return<ReadonlyMap<number, number>, RpcFailure> {
  const untimed = [...new Map(logs.flatMap((log) => (log.timestamp === null ? [[log.block, log]] : []))).values()]
  const answers = yield* provider.client.batch(untimed.map(({ block }) => blockByNumber(block)))
  const timestamps = new Map<number, number>()
  for (const [i, { block, blockHash }] of untimed.entries()) {
    const header = yield* headerAt(provider, answers[i]!, block)
    if (header === null) return yield* lacks(provider, block)
    if (header.hash !== blockHash || header.timestamp === null)
      return yield* changed(provider, `the receipts of block ${block} belong to another block of that number`)
    timestamps.set(block, header.timestamp)
  }
  return timestamps
})
