import type { LogSpec } from "./view.ts"

export const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
export const TRANSFER = "event Transfer(address indexed from, address indexed to, uint256 value)"

/** An address that ends in the number. */
export const addressOf = (number: number): string => `0x${number.toString(16).padStart(40, "0")}`

const word = (value: bigint | number): string => value.toString(16).padStart(64, "0")

/** An ERC-20 Transfer. */
export const transfer = (token: number, from: number, to: number, value: bigint | number): LogSpec => ({
  address: addressOf(token),
  topics: [TRANSFER_TOPIC, `0x${word(from)}`, `0x${word(to)}`],
  data: `0x${word(value)}`,
})

/** An ERC-721 Transfer: the same first topic, one topic more, no data. */
export const transfer721 = (token: number, from: number, to: number, id: number): LogSpec => ({
  address: addressOf(token),
  topics: [TRANSFER_TOPIC, `0x${word(from)}`, `0x${word(to)}`, `0x${word(id)}`],
  data: "0x",
})
