import type { Cursor } from "../../../core/model/cursor.ts"
import type { Fields } from "../../../core/model/fields.ts"
import type { SourceEvent } from "../../../core/plugin/source.ts"
import { FIRST_LOG } from "./log-position.ts"
import { type Log, transactionOf } from "./logs.ts"
import type { LogShape } from "./log-bucket.ts"
import type { LogRouting } from "./log-routing.ts"

/** The block of an event; one object serves all events of a block. */
type BlockFields = { readonly number: number; readonly hash: string; readonly timestamp: number }

/**
 * An event and its fields in one object, each field read when someone asks for it: most events are looked at in one
 * argument by one predicate, and an object less for each is what the garbage collector notices.
 */
class LogEvent implements SourceEvent {
  readonly index = 0
  readonly interests: ReadonlyArray<string>
  readonly block: BlockFields
  readonly #log: Log
  readonly #shape: LogShape
  #args: Fields | undefined = undefined

  constructor(log: Log, shape: LogShape, interests: ReadonlyArray<string>, block: BlockFields) {
    this.interests = interests
    this.block = block
    this.#log = log
    this.#shape = shape
  }

  get cursor(): Cursor {
    return { primary: this.#log.block, secondary: FIRST_LOG + this.#log.index }
  }

  get time(): number {
    return this.block.timestamp * 1000
  }

  fields(): Fields {
    this.#args ??= this.#shape.decode(this.#log.topics, this.#log.data)
    return this as unknown as Fields
  }

  get kind() {
    return "event"
  }

  get name() {
    return this.#shape.name
  }

  get signature() {
    return this.#shape.signature
  }

  get address() {
    return this.#log.address
  }

  get args() {
    return this.#args
  }

  get log() {
    return { index: this.#log.index }
  }

  get transaction() {
    return transactionOf(this.#log)
  }
}

/**
 * The events of logs in order, for the interests of `routing` and behind `after`.
 *
 * @param timestampOf the timestamp of a block whose logs do not tell it
 */
export const toEvents = (
  logs: ReadonlyArray<Log>,
  routing: LogRouting,
  timestampOf: (block: number) => number,
  after: Cursor,
): ReadonlyArray<SourceEvent> => {
  const events: Array<SourceEvent> = []
  let block: BlockFields | undefined
  let rawTopic: string | undefined
  let topic0: string | undefined
  for (const log of logs) {
    if (log.block < after.primary || (log.block === after.primary && FIRST_LOG + log.index <= after.secondary)) continue
    const first = log.topics[0]
    // The logs of a range share few first topics: each is brought to lower case once in a row.
    if (first !== rawTopic) {
      rawTopic = first
      topic0 = first?.toLowerCase()
    }
    for (const { shape, interests } of routing.routes(topic0, log)) {
      if (block === undefined || block.number !== log.block)
        block = { number: log.block, hash: log.blockHash, timestamp: log.timestamp ?? timestampOf(log.block) }
      events.push(new LogEvent(log, shape, interests, block))
    }
  }
  return events
}
