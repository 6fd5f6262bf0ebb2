import { isWordHex, MalformedAnswer, readAddress, readBytes, readHash, readObject, readQuantity } from "./wire.ts"

/** A log that was checked; hex of `topics` and `data` as it came. */
export interface Log {
  readonly block: number
  readonly blockHash: string
  /** Seconds since 1970, if the node tells it with the log. */
  readonly timestamp: number | null
  readonly index: number
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
  /** Null if the log belongs to no transaction. */
  readonly transaction: { readonly hash: string; readonly index: number } | null
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
  /** Addresses as they came, with their canonical form. */
  readonly #addresses = new Map<unknown, string>()
  readonly #firstTopics = new Set<unknown>()

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
      data: readBytes(raw["data"], "the data of a log"),
      transaction: readTransaction(raw),
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
    let address = this.#addresses.get(raw)
    if (address === undefined) {
      address = readAddress(raw, "the address of a log")
      this.#addresses.set(raw, address)
    }
    return address
  }

  #topics(raw: unknown): ReadonlyArray<string> {
    if (!Array.isArray(raw) || raw.length > MAX_TOPICS)
      throw new MalformedAnswer("the topics of a log should be a list of at most four")
    for (let i = 0; i < raw.length; i++) {
      if (i === 0 && this.#firstTopics.has(raw[0])) continue
      if (!isWordHex(raw[i])) throw new MalformedAnswer("a topic of a log should be 32 bytes in hex")
      if (i === 0) this.#firstTopics.add(raw[0])
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

const readTransaction = (raw: Readonly<Record<string, unknown>>): Log["transaction"] => {
  const { transactionHash, transactionIndex } = raw
  if (transactionHash === undefined || transactionHash === null) return null
  if (transactionIndex === undefined || transactionIndex === null) return null
  const hash = readHash(transactionHash, "the transactionHash of a log")
  return hash === ZERO_HASH ? null : { hash, index: readQuantity(transactionIndex, "the transactionIndex of a log") }
}

const compare = (a: Log, b: Log): number => a.block - b.block || a.index - b.index

const isSame = (a: Log, b: Log): boolean =>
  a.blockHash === b.blockHash &&
  a.address === b.address &&
  a.data === b.data &&
  a.topics.length === b.topics.length &&
  a.topics.every((topic, i) => topic === b.topics[i]) &&
  a.transaction?.hash === b.transaction?.hash

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
