import { HASH_LENGTH, MalformedAnswer, readAddress, readHash, readObject, readQuantity } from "./wire.ts"

/**
 * A log that was checked. Hex of `topics` and `data` is as it came: its digits are checked where they are decoded, for
 * most logs are looked at in one argument only.
 */
export interface Log {
  readonly block: number
  readonly blockHash: string
  /** Seconds since 1970, if the node tells it with the log. */
  readonly timestamp: number | null
  readonly index: number
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
  /** As it came; see `transactionOf`. */
  readonly transactionHash: unknown
  readonly transactionIndex: unknown
}

/** Logs in order, each once. */
export interface Logs {
  readonly logs: ReadonlyArray<Log>
  /** How many identical repeats were dropped. */
  readonly duplicates: number
}

const MAX_TOPICS = 4

const ZERO_HASH = `0x${"0".repeat(64)}`

/**
 * Reads the answer of `eth_getLogs` for the blocks `from` to `to`. Throws `MalformedAnswer` if a log lacks what is
 * required, lies outside, or contradicts another one.
 */
export const readLogs = (answer: unknown, from: number, to: number): Logs => {
  if (!Array.isArray(answer)) throw new MalformedAnswer("the logs should be a list, but are something else")
  const read = new LogReader(from, to)
  const logs = answer.map((raw) => read.log(raw))
  return inOrder(logs)
}

/**
 * Joins the answers to several filters about the same blocks: what both hold comes once. Throws `MalformedAnswer` if they
 * contradict each other.
 */
export const joinAnswers = (lists: ReadonlyArray<ReadonlyArray<Log>>): ReadonlyArray<Log> => inOrder(lists.flat()).logs

/** Logs of one answer repeat each other: what was read is kept, so that it is parsed once and not once a log. */
class LogReader {
  readonly #from: number
  readonly #to: number
  #rawNumber: unknown = undefined
  #number = 0
  #rawHash: unknown = undefined
  #hash = ""
  #rawTime: unknown = undefined
  #time: number | null = null
  #rawAddress: unknown = undefined
  #lastAddress = ""
  /** Addresses as they came, with their canonical form. */
  readonly #addresses = new Map<unknown, string>()

  constructor(from: number, to: number) {
    this.#from = from
    this.#to = to
  }

  log(answer: unknown): Log {
    const raw = readObject(answer, "a log")
    if (raw["removed"] === true) throw new MalformedAnswer("a log is marked as removed by a reorganisation")
    return {
      block: this.#block(raw["blockNumber"]),
      blockHash: this.#blockHash(raw["blockHash"]),
      timestamp: this.#timestamp(raw["blockTimestamp"]),
      index: readQuantity(raw["logIndex"], "the logIndex of a log"),
      address: this.#address(raw["address"]),
      topics: this.#topics(raw["topics"]),
      data: readData(raw["data"]),
      transactionHash: raw["transactionHash"],
      transactionIndex: raw["transactionIndex"],
    }
  }

  #block(raw: unknown): number {
    if (raw !== this.#rawNumber) {
      const number = readQuantity(raw, "the blockNumber of a log")
      if (number < this.#from || number > this.#to)
        throw new MalformedAnswer(
          `a log of block ${number} was answered where blocks ${this.#from} to ${this.#to} were asked for`,
        )
      this.#number = number
      this.#rawNumber = raw
    }
    return this.#number
  }

  #blockHash(raw: unknown): string {
    if (raw !== this.#rawHash) {
      this.#hash = readHash(raw, "the blockHash of a log")
      this.#rawHash = raw
    }
    return this.#hash
  }

  #address(raw: unknown): string {
    if (raw === this.#rawAddress) return this.#lastAddress
    let address = this.#addresses.get(raw)
    if (address === undefined) {
      address = readAddress(raw, "the address of a log")
      this.#addresses.set(raw, address)
    }
    this.#rawAddress = raw
    this.#lastAddress = address
    return address
  }

  #topics(raw: unknown): ReadonlyArray<string> {
    if (!Array.isArray(raw) || raw.length > MAX_TOPICS)
      throw new MalformedAnswer("the topics of a log should be a list of at most four")
    for (const topic of raw) {
      if (typeof topic !== "string" || topic.length !== HASH_LENGTH || !topic.startsWith("0x"))
        throw new MalformedAnswer("a topic of a log should be 32 bytes in hex")
    }
    return raw
  }

  #timestamp(raw: unknown): number | null {
    if (raw !== this.#rawTime) {
      this.#time = readTimestamp(raw)
      this.#rawTime = raw
    }
    return this.#time
  }
}

/** Not every node tells it, and some tell 0; then it is read from the block. */
const readTimestamp = (raw: unknown): number | null => {
  if (raw === undefined || raw === null) return null
  const timestamp = readQuantity(raw, "the blockTimestamp of a log")
  return timestamp === 0 ? null : timestamp
}

const readData = (raw: unknown): string => {
  if (typeof raw === "string" && raw.length % 2 === 0 && raw.startsWith("0x")) return raw
  throw new MalformedAnswer("the data of a log should be bytes in hex")
}

/**
 * The transaction of a log, or null: some logs belong to none, and a log is an event whatever its node says about the
 * transaction around it.
 */
export const transactionOf = ({
  transactionHash,
  transactionIndex,
}: Log): { readonly hash: string; readonly index: number } | null => {
  if (typeof transactionHash !== "string" || typeof transactionIndex !== "string") return null
  try {
    const hash = readHash(transactionHash, "the transactionHash of a log")
    return hash === ZERO_HASH ? null : { hash, index: readQuantity(transactionIndex, "the transactionIndex of a log") }
  } catch {
    return null
  }
}

const compare = (a: Log, b: Log): number => a.block - b.block || a.index - b.index

const isSame = (a: Log, b: Log): boolean =>
  a.blockHash === b.blockHash &&
  a.address === b.address &&
  a.data === b.data &&
  a.topics.length === b.topics.length &&
  a.topics.every((topic, i) => topic === b.topics[i]) &&
  a.transactionHash === b.transactionHash

/** Sorts, drops repeats, and checks that the logs of a block agree about its hash. */
const inOrder = (logs: Array<Log>): Logs => {
  let sorted = true
  for (let i = 1; i < logs.length && sorted; i++) sorted = compare(logs[i - 1]!, logs[i]!) < 0
  if (!sorted) logs.sort(compare)
  const once: Array<Log> = sorted ? logs : []
  if (!sorted)
    for (const log of logs) {
      const last = once.at(-1)
      if (last === undefined || compare(last, log) !== 0) once.push(log)
      else if (!isSame(last, log))
        throw new MalformedAnswer(`two different logs have the index ${log.index} in block ${log.block}`)
    }
  for (let i = 1; i < once.length; i++) {
    const [a, b] = [once[i - 1]!, once[i]!]
    if (a.block === b.block && a.blockHash !== b.blockHash)
      throw new MalformedAnswer(`the logs of block ${b.block} name two different blocks of that number`)
  }
  return { logs: once, duplicates: logs.length - once.length }
}
