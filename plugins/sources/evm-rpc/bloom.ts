import { keccak256, toBytes } from "viem"

/** The three bits that each of a list of values sets in a logs bloom: the byte that holds it, and its mask there. */
export interface BloomBits {
  readonly bytes: Uint8Array
  readonly masks: Uint8Array
}

const BITS_EACH = 3
const BYTES = 256
const BITS = 8 * BYTES

/** Computes the bits of addresses or topics, given as hex. */
export const bloomBits = (values: ReadonlyArray<string>): BloomBits => {
  const bytes = new Uint8Array(BITS_EACH * values.length)
  const masks = new Uint8Array(BITS_EACH * values.length)
  for (const [i, value] of values.entries()) {
    const hash = keccak256(toBytes(value as `0x${string}`), "bytes")
    for (let j = 0; j < BITS_EACH; j++) {
      const bit = ((hash[2 * j]! << 8) | hash[2 * j + 1]!) % BITS
      bytes[BITS_EACH * i + j] = BYTES - 1 - (bit >> 3)
      masks[BITS_EACH * i + j] = 1 << (bit & 7)
    }
  }
  return { bytes, masks }
}

/** What a bloom says. */
export class Bloom {
  readonly #bytes: Buffer

  /** Reads the hex of a bloom. */
  constructor(hex: string) {
    this.#bytes = Buffer.from(hex.slice(2), "hex")
  }

  /** The probability that it seems to hold a value that is not there. */
  get byChance(): number {
    let set = 0
    for (const byte of this.#bytes) for (let rest = byte; rest > 0; rest &= rest - 1) set++
    return (set / BITS) ** BITS_EACH
  }

  /** The place of the first value from `start` on that it may hold, or -1; that is certain only if the node really filled it in. */
  find({ bytes, masks }: BloomBits, start = 0): number {
    const bloom = this.#bytes
    for (let i = BITS_EACH * start; i < bytes.length; i += BITS_EACH)
      if (
        (bloom[bytes[i]!]! & masks[i]!) !== 0 &&
        (bloom[bytes[i + 1]!]! & masks[i + 1]!) !== 0 &&
        (bloom[bytes[i + 2]!]! & masks[i + 2]!) !== 0
      )
        return i / BITS_EACH
    return -1
  }
}

const BLOOM = /^0x[0-9a-fA-F]{512}$/
const ZERO = /^0x0*$/

/** A bloom that says something: some nodes leave it out or send all zeros for blocks that do have logs. */
export const readBloom = (value: unknown): string | null =>
  typeof value === "string" && BLOOM.test(value) && !ZERO.test(value) ? value : null
