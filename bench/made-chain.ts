import { createHash } from "node:crypto"
import { keccak256 } from "viem"

/** How large a made chain is. Blocks are numbered from 1 behind an empty block 0. */
export interface ChainSize {
  readonly blocks: number
  readonly logsPerBlock: number
}

export const CHAIN_ID = 31337
export const TOKEN = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
export const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

/** One log in so many moves at least this value; all others move less. */
export const RARE = { every: 10_000, value: 10n ** 24n } as const

const GENESIS_TIME = 1_700_000_000
const SECONDS_A_BLOCK = 12
const ACCOUNTS = 1000

/** A chain as a node would answer it: the JSON of its headers, and that of all logs in one piece. */
export interface MadeChain extends ChainSize {
  /** The JSON of a block without transactions, or null beyond the head. */
  readonly header: (number: number) => string | null
  readonly numberOf: (hash: string) => number | undefined
  /** The JSON of the logs of the blocks `from` to `to`, separated by commas. */
  readonly logs: (from: number, to: number) => Buffer
}

const hex = (number: number | bigint): string => `0x${number.toString(16)}`
const word = (digits: string): string => digits.padStart(64, "0")
const hashOf = (what: string): string => `0x${createHash("sha256").update(what).digest("hex")}`
const blockHash = (number: number): string => hashOf(`block ${number}`)

/** Collects the bloom of a block; the bits of a value are computed once a chain. */
const makeBlooms = () => {
  const known = new Map<string, ReadonlyArray<number>>()
  const bitsOf = (value: string): ReadonlyArray<number> => {
    let bits = known.get(value)
    if (bits === undefined) {
      const hash = keccak256(value as `0x${string}`, "bytes")
      bits = [0, 2, 4].map((i) => ((hash[i]! << 8) | hash[i + 1]!) % 2048)
      known.set(value, bits)
    }
    return bits
  }
  return (values: Iterable<string>): string => {
    const bloom = Buffer.alloc(256)
    for (const value of values) for (const bit of bitsOf(value)) bloom[255 - (bit >> 3)]! |= 1 << (bit & 7)
    return `0x${bloom.toString("hex")}`
  }
}

/** Makes the whole chain: transfers of one ERC-20 token, the same ones every time. */
export const makeChain = ({ blocks, logsPerBlock }: ChainSize): MadeChain => {
  const bloom = makeBlooms()
  const accounts = Array.from({ length: ACCOUNTS }, (_, i) => `0x${word(hashOf(`account ${i}`).slice(26))}`)
  const headers: Array<string> = []
  const numbers = new Map<string, number>()
  const pieces: Array<Buffer> = []
  const offsets: Array<number> = [0]
  for (let number = 0; number <= blocks; number++) {
    const hash = blockHash(number)
    const timestamp = hex(GENESIS_TIME + number * SECONDS_A_BLOCK)
    const seen = new Set<string>()
    let logs = ""
    const count = number === 0 ? 0 : logsPerBlock
    for (let index = 0; index < count; index++) {
      const nth = (number - 1) * logsPerBlock + index
      const topics = [TRANSFER, accounts[nth % ACCOUNTS]!, accounts[(nth * 7 + 1) % ACCOUNTS]!]
      const value = nth % RARE.every === RARE.every / 2 ? RARE.value : 10n ** 18n + BigInt(nth)
      for (const value of [TOKEN, ...topics]) seen.add(value)
      const log = {
        address: TOKEN,
        topics,
        data: `0x${word(value.toString(16))}`,
        blockNumber: hex(number),
        transactionHash: hashOf(`transaction ${nth}`),
        transactionIndex: hex(index),
        blockHash: hash,
        blockTimestamp: timestamp,
        logIndex: hex(index),
        removed: false,
      }
      logs += `${JSON.stringify(log)},`
    }
    const piece = Buffer.from(logs)
    pieces.push(piece)
    offsets.push(offsets.at(-1)! + piece.length)
    numbers.set(hash, number)
    headers.push(
      JSON.stringify({
        number: hex(number),
        hash,
        parentHash: number === 0 ? `0x${word("")}` : blockHash(number - 1),
        timestamp,
        logsBloom: bloom(seen),
        gasLimit: "0x1c9c380",
        gasUsed: "0x5208",
        miner: `0x${"0".repeat(40)}`,
        transactions: [],
      }),
    )
  }
  const all = Buffer.concat(pieces)
  return {
    blocks,
    logsPerBlock,
    header: (number) => headers[number] ?? null,
    numberOf: (hash) => numbers.get(hash),
    logs: (from, to) => {
      const first = Math.max(from, 0)
      const last = Math.min(to, blocks)
      return first > last
        ? Buffer.alloc(0)
        : all.subarray(offsets[first]!, Math.max(offsets[first]!, offsets[last + 1]! - 1))
    },
  }
}
