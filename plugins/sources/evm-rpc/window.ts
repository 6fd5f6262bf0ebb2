import type { Anchor } from "../../../core/plugin/source.ts"

/** The hashes of blocks that were handed over, newest last; the oldest are forgotten beyond the limit. */
export class HashWindow {
  readonly #hashes = new Map<number, string>()
  readonly #limit: number

  constructor(limit: number, anchors: ReadonlyArray<Anchor>) {
    this.#limit = Math.max(limit, anchors.length)
    for (const anchor of anchors.toSorted((a, b) => a.primary - b.primary)) this.put(anchor)
  }

  /** Adds the hash of a block that is higher than all before. */
  put({ primary, hash }: Anchor): void {
    this.#hashes.delete(primary)
    this.#hashes.set(primary, hash)
    if (this.#hashes.size > this.#limit) this.#hashes.delete(this.#hashes.keys().next().value!)
  }

  hashOf(number: number): string | undefined {
    return this.#hashes.get(number)
  }

  get newestFirst(): ReadonlyArray<Anchor> {
    return [...this.#hashes].map(([primary, hash]) => ({ primary, hash })).toReversed()
  }

  get newest(): Anchor | undefined {
    return this.newestFirst[0]
  }
}

/** A hash that is known beside the one that a provider answers now; null if it does not have the block. */
export interface Comparison {
  readonly primary: number
  readonly ours: string
  readonly theirs: string | null
}

/**
 * What comparisons say, newest first: `intact` unless a height that both have holds another hash. `common` is the
 * newest height with the same hash, undefined as long as none was compared.
 */
export interface Divergence {
  readonly intact: boolean
  /** The lowest height with another hash. */
  readonly lowestOther: Comparison | undefined
  readonly common: number | undefined
}

/** Compares down to the newest common height; a block that the provider does not have proves nothing. */
export const compareHistory = (newestFirst: ReadonlyArray<Comparison>): Divergence => {
  let lowestOther: Comparison | undefined
  for (const comparison of newestFirst) {
    if (comparison.theirs === null) continue
    if (comparison.theirs === comparison.ours)
      return { intact: lowestOther === undefined, lowestOther, common: comparison.primary }
    lowestOther = comparison
  }
  return { intact: lowestOther === undefined, lowestOther, common: undefined }
}
