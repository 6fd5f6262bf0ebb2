import type { TransactionPool } from "./pool.ts"

/** A log that a block of the simulated chain shall hold. */
export interface LogSpec {
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
  /** Without one, as some chains have them. */
  readonly transaction?: null
}

/** A transaction that a block of the simulated chain shall hold; log `i` of the block is of its transaction `i`. */
export interface TransactionSpec {
  readonly from?: string
  /** Null creates a contract. */
  readonly to: string | null
  readonly value?: bigint | number
  readonly input?: string
  /** Null for a receipt that does not tell it. */
  readonly status?: "success" | "reverted" | null
  /** The address of the contract that it creates. */
  readonly creates?: string
  /** Derived from its block and place unless told: one that waited in the pool keeps its hash. */
  readonly hash?: string
  readonly nonce?: number
}

export interface SimulatedBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly logs: ReadonlyArray<LogSpec>
  readonly transactions: ReadonlyArray<TransactionSpec>
  readonly logsBloom: string
}

/** A log and where it stands. */
export interface PlacedLog {
  readonly block: number
  readonly hash: string
  readonly index: number
  readonly log: LogSpec
}

/** A chain as it is read: one fork, from its first block to its head. */
export class ChainView {
  readonly chainId: number
  protected readonly blocks: Array<SimulatedBlock>
  /** The blocks of every fork. */
  protected readonly all: Map<string, SimulatedBlock>
  /** The transactions that wait; every fork of a chain has the same. */
  readonly pool: TransactionPool
  readonly #listeners = new Set<() => void>()
  safe: number | null
  finalized: number | null

  constructor(
    chainId: number,
    blocks: ReadonlyArray<SimulatedBlock>,
    all: Map<string, SimulatedBlock>,
    {
      safe,
      finalized,
      pool,
    }: { readonly safe: number | null; readonly finalized: number | null; readonly pool: TransactionPool },
  ) {
    this.chainId = chainId
    this.blocks = [...blocks]
    this.all = all
    this.pool = pool
    this.safe = safe
    this.finalized = finalized
  }

  /** Tells whenever the blocks have changed; what is answered ends it. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  protected changed(): void {
    for (const listener of this.#listeners) listener()
  }

  get head(): SimulatedBlock {
    return this.blocks.at(-1)!
  }

  at(number: number): SimulatedBlock | undefined {
    return this.blocks[number]
  }

  /** Its blocks, by their numbers. */
  get fromGenesis(): ReadonlyArray<SimulatedBlock> {
    return this.blocks
  }

  /** A block of any fork. */
  byHash(hash: string): SimulatedBlock | undefined {
    return this.all.get(hash)
  }

  isCanonical(block: SimulatedBlock): boolean {
    return this.blocks[block.number] === block
  }

  /** The fork that has these blocks, which follow each other, in place of its newest. */
  replacedBy(blocks: ReadonlyArray<SimulatedBlock>): ChainView {
    const first = blocks[0]?.number ?? this.blocks.length
    const all = new Map(this.all)
    for (const block of blocks) all.set(block.hash, block)
    return new ChainView(this.chainId, [...this.blocks.slice(0, first), ...blocks], all, this)
  }

  /** The logs of this fork's blocks `from` to `to` in the chain's order: what a perfect watcher has seen. */
  canonicalLogs(from = 0, to = this.head.number): ReadonlyArray<PlacedLog> {
    return this.blocks
      .slice(from, to + 1)
      .flatMap(({ number, hash, logs }) => logs.map((log, index) => ({ block: number, hash, index, log })))
  }

  /** Whether some fork holds both blocks. */
  areOnOneFork(hash: string, other: string): boolean {
    const [low, high] = [this.byHash(hash), this.byHash(other)].toSorted((a, b) => (a?.number ?? 0) - (b?.number ?? 0))
    if (low === undefined || high === undefined) return false
    let block: SimulatedBlock | undefined = high
    while (block !== undefined && block.number > low.number) block = this.byHash(block.parentHash)
    return block === low
  }
}
