import { readBloom } from "./bloom.ts"
import { MalformedAnswer, readHash, readObject, readQuantity } from "./wire.ts"

/** What is used of a block's header. */
export interface Header {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Seconds since 1970; null if the node leaves it out. */
  readonly timestamp: number | null
  /** Null if the node says nothing by it. */
  readonly bloom: string | null
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
  }
}

/** Reads the block that was asked for by its number. Throws `MalformedAnswer`. */
export const readHeaderAt = (answer: unknown, number: number): Header | null => {
  const header = readHeader(answer)
  if (header !== null && header.number !== number)
    throw new MalformedAnswer(`block ${header.number} was answered where block ${number} was asked for`)
  return header
}
