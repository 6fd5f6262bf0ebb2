import { readBloom } from "./bloom.ts"
import { MalformedAnswer, readAddress, readHash, readInteger, readObject, readQuantity } from "./wire.ts"

/** What is used of a block's header. */
export interface Header {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Seconds since 1970; null if the node leaves it out. */
  readonly timestamp: number | null
  /** Null if the node says nothing by it. */
  readonly bloom: string | null
  /** What monitors of blocks see beside it; null where the node leaves it out. */
  readonly miner: string | null
  /** How many transactions it has. */
  readonly transactions: number | null
  readonly gasUsed: bigint | null
  readonly gasLimit: bigint | null
  readonly baseFeePerGas: bigint | null
}

/** What the answer holds under a key, or null if it is not there or not to be understood: no header fails over it. */
const leniently = <A>(value: unknown, read: (value: unknown, what: string) => A): A | null => {
  if (value === undefined || value === null) return null
  try {
    return read(value, "a field of a block")
  } catch (error) {
    if (error instanceof MalformedAnswer) return null
    throw error
  }
}

/** Reads a block; null if the node does not know it. Throws `MalformedAnswer`. */
export const readHeader = (answer: unknown): Header | null => {
  if (answer === null) return null
  const block = readObject(answer, "a block")
  return {
    number: readQuantity(block["number"], "the number of a block"),
    hash: readHash(block["hash"], "the hash of a block"),
    parentHash: readHash(block["parentHash"], "the parentHash of a block"),
    timestamp:
      block["timestamp"] === undefined || block["timestamp"] === null
        ? null
        : readQuantity(block["timestamp"], "the timestamp of a block"),
    bloom: readBloom(block["logsBloom"]),
    miner: leniently(block["miner"], readAddress),
    transactions: Array.isArray(block["transactions"]) ? block["transactions"].length : null,
    gasUsed: leniently(block["gasUsed"], readInteger),
    gasLimit: leniently(block["gasLimit"], readInteger),
    baseFeePerGas: leniently(block["baseFeePerGas"], readInteger),
  }
}

/** Reads the block that was asked for by its number. Throws `MalformedAnswer`. */
export const readHeaderAt = (answer: unknown, number: number): Header | null => {
  const header = readHeader(answer)
  if (header !== null && header.number !== number)
    throw new MalformedAnswer(`block ${header.number} was answered where block ${number} was asked for`)
  return header
}
