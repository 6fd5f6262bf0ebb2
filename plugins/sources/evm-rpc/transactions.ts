import { areDigits, MalformedAnswer, readAddress, readHash, readInteger, readObject } from "./wire.ts"

/** A transaction of a block. Chains have types of their own that lack what others have. */
export interface Transaction {
  /** Its place in the block. */
  readonly index: number
  readonly hash: string
  readonly from: string | null
  /** Null if it creates a contract. */
  readonly to: string | null
  readonly value: bigint | null
  /** Hex of whole bytes as it came; its digits are checked where they are read. */
  readonly input: string
}

/** The root of a block that has no transactions. */
const EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"

/** Reads the transactions of a block that was asked for with them. Throws `MalformedAnswer`. */
export const readTransactions = (answer: unknown): ReadonlyArray<Transaction> => {
  const block = readObject(answer, "a block")
  const listed = block["transactions"]
  if (Array.isArray(listed)) return listed.map(readTransaction)
  if ((listed === undefined || listed === null) && block["transactionsRoot"] === EMPTY_ROOT) return []
  throw new MalformedAnswer("the transactions of a block should be a list, but are something else")
}

/** Reads a transaction that stands at `index`. Throws `MalformedAnswer`. */
export const readTransaction = (answer: unknown, index: number): Transaction => {
  const raw = readObject(answer, "a transaction")
  return {
    index,
    hash: readHash(raw["hash"], "the hash of a transaction"),
    from: readParty(raw["from"], "the sender of a transaction"),
    to: readParty(raw["to"], "the receiver of a transaction"),
    value: isAbsent(raw["value"]) ? null : readInteger(raw["value"], "the value of a transaction"),
    input: readInput(raw["input"] ?? raw["data"]),
  }
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null

/** An address, or null where a node has nothing to say. */
export const readParty = (value: unknown, what: string): string | null =>
  isAbsent(value) || value === "" || value === "0x" ? null : readAddress(value, what)

const readInput = (value: unknown): string => {
  if (isAbsent(value)) return "0x"
  if (typeof value === "string" && value.length % 2 === 0 && value.startsWith("0x")) return value
  throw new MalformedAnswer("the input of a transaction should be bytes in hex")
}

/** Characters of `0x` and the four bytes that name a function. */
export const SELECTOR_LENGTH = 10

/** What stands in the input behind the four bytes that name a function. */
export const argumentsOf = ({ input }: Transaction): string => `0x${input.slice(SELECTOR_LENGTH)}`

/** The input in lower case. Throws if it is no hex. */
export const inputOf = ({ input }: Transaction): string => {
  if (!areDigits(input, 2)) throw new Error("the input of the transaction is no hex")
  return input.toLowerCase()
}
