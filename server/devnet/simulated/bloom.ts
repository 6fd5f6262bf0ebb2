import { keccak256 } from "viem"

const known = new Map<string, ReadonlyArray<number>>()

/** The bits of a value, computed once: a simulated chain has few addresses and topics. */
const bitsOf = (value: string): ReadonlyArray<number> => {
  let bits = known.get(value)
  if (bits === undefined) {
    const hash = keccak256(value as `0x${string}`, "bytes")
    const view = new DataView(hash.buffer, hash.byteOffset)
    bits = [0, 2, 4].map((at) => view.getUint16(at) & 0x7ff)
    known.set(value, bits)
  }
  return bits
}

/** The logs bloom of a block, as the yellow paper defines it: 2048 bits, three for each address and topic. */
export const bloomOf = (values: ReadonlyArray<string>): string => {
  const bytes = new Uint8Array(256)
  for (const bit of values.flatMap(bitsOf)) bytes[255 - Math.floor(bit / 8)]! |= 1 << (bit % 8)
  return `0x${Buffer.from(bytes).toString("hex")}`
}
