import { createHash } from "node:crypto"
import { bloomOf } from "./bloom.ts"
import { isFromPool, TransactionPool } from "./pool.ts"
import { ChainView, type LogSpec, type SimulatedBlock, type TransactionSpec } from "./view.ts"

/** What new blocks hold: the same in each, or what is told for a block's number. */
type Each<Spec> = ReadonlyArray<Spec> | ((block: number) => ReadonlyArray<Spec>)
type LogsOf = Each<LogSpec>
type TransactionsOf = Each<TransactionSpec>

const inBlock = <Spec>(each: Each<Spec>, number: number): ReadonlyArray<Spec> =>
  typeof each === "function" ? each(number) : each

const GENESIS_TIME = 1_700_000_000
const BLOCK_TIME = 12

const digest = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`

const textOf = (transactions: ReadonlyArray<TransactionSpec>): string =>
  transactions.map(({ value = 0, ...rest }) => `${JSON.stringify(rest)} ${value}`).join("")

export interface ChainOptions {
  readonly chainId?: number
  readonly zeroBlooms?: boolean
  /** Makes the hashes of chains differ. */
  readonly seed?: string
  /** Seconds since 1970 of a new block; a block each 12 seconds unless told. */
  readonly timestampOf?: (number: number) => number
  /** Blocks that are kept, so that a chain can grow for ever; all unless told. */
  readonly keep?: number
}

/** A chain in memory. The same calls make the same blocks. */
export class SimulatedChain extends ChainView {
  /** Fills blooms with zeros, as some nodes do. */
  readonly zeroBlooms: boolean
  readonly #timestampOf: (number: number) => number
  readonly #keep: number
  #branch = 0

  constructor(options: ChainOptions = {}) {
    super(options.chainId ?? 1, [], new Map(), { safe: null, finalized: null, pool: new TransactionPool() })
    this.zeroBlooms = options.zeroBlooms ?? false
    this.#timestampOf = options.timestampOf ?? ((number) => GENESIS_TIME + number * BLOCK_TIME)
    this.#keep = options.keep ?? Number.POSITIVE_INFINITY
    this.#append([], [], options.seed ?? "")
  }

  /**
   * Adds blocks; `logs` and `transactions` are those of each of them. A log whose transaction is not among them is of one
   * to its address.
   */
  mine(count: number, logs: LogsOf = [], transactions: TransactionsOf = []): this {
    for (let i = 0; i < count; i++) {
      const number = this.blocks.length
      this.#append(inBlock(logs, number), inBlock(transactions, number), `${this.#branch}`)
    }
    this.changed()
    return this
  }

  /**
   * Replaces the newest `depth` blocks by others; `length` of them, `depth` unless told. `same` mines the logs of the
   * replaced blocks again, at their heights. What came from the pool and is not mined again goes back there. Answers the
   * blocks that are gone, for `restore`.
   */
  reorg(
    depth: number,
    options: { readonly length?: number; readonly logs?: LogsOf | "same"; readonly transactions?: TransactionsOf } = {},
  ): ReadonlyArray<SimulatedBlock> {
    const first = this.blocks.length - depth
    const gone = this.blocks.splice(first, depth)
    this.#branch++
    const logs = options.logs ?? []
    this.mine(
      options.length ?? depth,
      logs === "same" ? (number) => gone[number - first]?.logs ?? [] : logs,
      options.transactions,
    )
    this.#settlePool(gone)
    return gone
  }

  /** Makes a branch that was reorganised away canonical again. */
  restore(branch: ReadonlyArray<SimulatedBlock>): ReadonlyArray<SimulatedBlock> {
    const gone = this.blocks.splice(branch[0]!.number)
    this.blocks.push(...branch)
    this.#settlePool(gone)
    this.changed()
    return gone
  }

  /** The fork as it stands now, for `switchTo`, or for a node that shall stay behind. What is mined later is not in it. */
  fork(): ChainView {
    return new ChainView(this.chainId, this.blocks, this.all, this)
  }

  /** Makes a fork canonical, block for block as it was. What is mined from now on stands on it, and is new. */
  switchTo(fork: ChainView): this {
    const first = fork.fromGenesis.findIndex((block) => block !== undefined && !this.isCanonical(block))
    const gone = this.blocks.splice(0, this.blocks.length, ...fork.fromGenesis)
    this.#branch++
    this.#settlePool(first === -1 ? gone.slice(fork.fromGenesis.length) : gone.slice(first))
    this.changed()
    return this
  }

  #append(logs: ReadonlyArray<LogSpec>, transactions: ReadonlyArray<TransactionSpec>, salt: string): void {
    const number = this.blocks.length
    const parentHash = this.blocks.at(-1)?.hash ?? `0x${"0".repeat(64)}`
    const block: SimulatedBlock = {
      number,
      parentHash,
      hash: digest(`${this.chainId} ${parentHash} ${salt} ${number} ${JSON.stringify(logs)}${textOf(transactions)}`),
      timestamp: this.#timestampOf(number),
      logs,
      transactions,
      logsBloom: bloomOf(this.zeroBlooms ? [] : logs.flatMap(({ address, topics }) => [address, ...topics])),
    }
    this.blocks.push(block)
    this.all.set(block.hash, block)
    this.#forget(number - this.#keep)
  }

  /** Blocks were put in place of `gone`: the pool has what no block holds now. */
  #settlePool(gone: ReadonlyArray<SimulatedBlock>): void {
    const present = this.blocks.slice(gone[0]?.number ?? this.blocks.length)
    const mined = new Set(present.flatMap(({ transactions }) => transactions.map(({ hash }) => hash)))
    for (const hash of mined) if (hash !== undefined) this.pool.drop(hash)
    for (const transaction of gone.flatMap(({ transactions }) => transactions))
      if (isFromPool(transaction) && !mined.has(transaction.hash)) this.pool.putBack(transaction)
  }

  #forget(number: number): void {
    // Blocks were added in the order of their numbers, but for the few of a reorganisation.
    for (const [hash, block] of this.all) {
      if (block.number > number) return
      this.all.delete(hash)
      if (this.blocks[block.number] === block) delete this.blocks[block.number]
    }
  }
}
