import { createHash } from "node:crypto"
import { bloomOf } from "./bloom.ts"

/** A log that a block of the simulated chain shall hold. */
export interface LogSpec {
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
  /** Without one, as some chains have them. */
  readonly transaction?: null
}

export interface SimulatedBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly logs: ReadonlyArray<LogSpec>
  readonly logsBloom: string
}

type LogsOf = ReadonlyArray<LogSpec> | ((block: number) => ReadonlyArray<LogSpec>)

const GENESIS_TIME = 1_700_000_000
const BLOCK_TIME = 12

const digest = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`

/** A chain in memory. The same calls make the same blocks. */
export class SimulatedChain {
  readonly chainId: number
  /** Fills blooms with zeros, as some nodes do. */
  readonly zeroBlooms: boolean
  #blocks: Array<SimulatedBlock>
  readonly #all = new Map<string, SimulatedBlock>()
  #branch = 0
  safe: number | null = null
  finalized: number | null = null

  constructor(options: { readonly chainId?: number; readonly zeroBlooms?: boolean; readonly seed?: string } = {}) {
    this.chainId = options.chainId ?? 1
    this.zeroBlooms = options.zeroBlooms ?? false
    this.#blocks = []
    this.#append([], options.seed ?? "")
  }

  get head(): SimulatedBlock {
    return this.#blocks.at(-1)!
  }

  at(number: number): SimulatedBlock | undefined {
    return this.#blocks[number]
  }

  byHash(hash: string): SimulatedBlock | undefined {
    return this.#all.get(hash)
  }

  isCanonical(block: SimulatedBlock): boolean {
    return this.#blocks[block.number] === block
  }

  /** Adds blocks; `logs` are those of each of them. */
  mine(count: number, logs: LogsOf = []): this {
    for (let i = 0; i < count; i++)
      this.#append(typeof logs === "function" ? logs(this.#blocks.length) : logs, `${this.#branch}`)
    return this
  }

  /**
   * Replaces the newest `depth` blocks by others; `length` of them, `depth` unless told. Answers the blocks that are
   * gone, for `restore`.
   */
  reorg(
    depth: number,
    options: { readonly length?: number; readonly logs?: LogsOf } = {},
  ): ReadonlyArray<SimulatedBlock> {
    const gone = this.#blocks.splice(this.#blocks.length - depth, depth)
    this.#branch++
    this.mine(options.length ?? depth, options.logs ?? [])
    return gone
  }

  /** Makes a branch that was reorganised away canonical again. */
  restore(branch: ReadonlyArray<SimulatedBlock>): ReadonlyArray<SimulatedBlock> {
    const gone = this.#blocks.splice(branch[0]!.number)
    this.#blocks.push(...branch)
    return gone
  }

  #append(logs: ReadonlyArray<LogSpec>, salt: string): void {
    const number = this.#blocks.length
    const parentHash = this.#blocks.at(-1)?.hash ?? `0x${"0".repeat(64)}`
    const block: SimulatedBlock = {
      number,
      parentHash,
      hash: digest(`${this.chainId} ${parentHash} ${salt} ${number} ${JSON.stringify(logs)}`),
      timestamp: GENESIS_TIME + number * BLOCK_TIME,
      logs,
      logsBloom: bloomOf(this.zeroBlooms ? [] : logs.flatMap(({ address, topics }) => [address, ...topics])),
    }
    this.#blocks.push(block)
    this.#all.set(block.hash, block)
  }
}
