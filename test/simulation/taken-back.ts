import type { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import type { SimulatedBlock } from "../../server/devnet/simulated/view.ts"

/** Which blocks the chain has left, and which an operator had taken back: of nothing else may a match be retracted. */
export class TakenBack {
  readonly #chain: SimulatedChain
  readonly #hashes = new Set<string>()
  readonly #numbers = new Set<number>()
  #before: ReadonlyArray<SimulatedBlock>
  /** The block behind which an operator's rewind, that is not done yet, takes back everything. */
  #rewindsTo = Number.POSITIVE_INFINITY

  constructor(chain: SimulatedChain) {
    this.#chain = chain
    this.#before = [...chain.fromGenesis]
    chain.watch(() => this.#changed())
  }

  /** Everything behind a block is to be taken back. */
  rewindBegins(block: number): void {
    this.#rewindsTo = Math.min(this.#rewindsTo, block)
  }

  /** Everything behind a block was taken back. */
  rewindEnds(block: number): void {
    if (block > this.#rewindsTo) return
    for (const { number, hash } of this.#chain.fromGenesis.slice(this.#rewindsTo + 1)) this.#add(number, hash)
    this.#rewindsTo = Number.POSITIVE_INFINITY
  }

  has({ block, hash }: { readonly block: number; readonly hash: string }): boolean {
    return this.#hashes.has(hash) || block > this.#rewindsTo
  }

  /** Whether any block of such a number was ever taken back. */
  hasAny(from: number, to: number): boolean {
    for (let number = from; number <= to; number++) if (this.#numbers.has(number)) return true
    return false
  }

  #changed(): void {
    for (const block of this.#before.toReversed()) {
      if (this.#chain.isCanonical(block)) break
      this.#add(block.number, block.hash)
    }
    this.#before = [...this.#chain.fromGenesis]
  }

  #add(number: number, hash: string): void {
    this.#numbers.add(number)
    this.#hashes.add(hash)
  }
}
