import { keccak256 } from "viem"

/** The logs bloom of a block, as the yellow paper defines it: 2048 bits, three for each address and topic. */
export const bloomOf = (values: ReadonlyArray<string>): string => {
  const bytes = new Uint8Array(256)
  for (const value of values) {
    const hash = keccak256(value as `0x${string}`, "bytes")
    for (const at of [0, 2, 4]) {
      const bit = new DataView(hash.buffer, hash.byteOffset).getUint16(at) & 0x7ff
      bytes[255 - Math.floor(bit / 8)]! |= 1 << (bit % 8)
    }
  }
  return `0x${Buffer.from(bytes).toString("hex")}`
}
