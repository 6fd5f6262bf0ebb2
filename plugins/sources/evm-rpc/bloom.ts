import { keccak256, toBytes } from "viem"

/** The three bits of a value in a logs bloom: the hex digit that holds each, counted behind `0x`, and its mask there. */
export type BloomBits = ReadonlyArray<{ readonly digit: number; readonly mask: number }>

const BITS = 2048
const DIGITS = BITS / 4

/** Computes the bits of an address or topic, given as hex. */
export const bloomBits = (value: string): BloomBits => {
  const hash = keccak256(toBytes(value as `0x${string}`), "bytes")
  return [0, 2, 4].map((i) => {
    const bit = ((hash[i]! << 8) | hash[i + 1]!) % BITS
    return { digit: DIGITS - 1 - (bit >> 2), mask: 1 << (bit & 3) }
  })
}

/** Whether the bloom may hold the value; false is certain only for a bloom that the node really filled in. */
export const mayHold = (bloom: string, bits: BloomBits): boolean =>
  bits.every(({ digit, mask }) => (Number.parseInt(bloom[2 + digit]!, 16) & mask) !== 0)

const BLOOM = /^0x[0-9a-fA-F]{512}$/
const ZERO = /^0x0*$/

/** A bloom that says something: some nodes leave it out or send all zeros for blocks that do have logs. */
export const readBloom = (value: unknown): string | null =>
  typeof value === "string" && BLOOM.test(value) && !ZERO.test(value) ? value : null
