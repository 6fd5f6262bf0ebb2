import type { Cursor } from "../../../core/model/cursor.ts"
import type { Fields } from "../../../core/model/fields.ts"
import type { SourceEvent } from "../../../core/plugin/source.ts"
import type { Log } from "./logs.ts"
import type { LogShape, Routing } from "./routing.ts"

/** The secondary of log 0; what lies below is the block itself and its transactions. */
const FIRST_LOG = 2 ** 20

/** The block of an event; one object serves all events of a block. */
type BlockFields = { readonly number: number; readonly hash: string; readonly timestamp: number }

class LogEvent implements SourceEvent {
  readonly index = 0
  readonly interests: ReadonlyArray<string>
  readonly time: number
  readonly #log: Log
  readonly #shape: LogShape
  readonly #block: BlockFields
  #fields: Fields | undefined = undefined

  constructor(log: Log, shape: LogShape, interests: ReadonlyArray<string>, block: BlockFields) {
    this.interests = interests
    this.time = block.timestamp * 1000
    this.#log = log
    this.#shape = shape
    this.#block = block
  }

  get cursor(): Cursor {
    return { primary: this.#log.block, secondary: FIRST_LOG + this.#log.index }
  }

  fields(): Fields {
    return (this.#fields ??= this.#decode())
  }

  #decode(): Fields {
    const log = this.#log
    const { name, signature, decode } = this.#shape
    return {
      kind: "event",
      name,
      signature,
      address: log.address,
      args: decode(log.topics, log.data),
      log: { index: log.index },
      transaction: log.transaction,
      block: this.#block,
    }
  }
}

const isBehind = (log: Log, after: Cursor): boolean =>
  log.block > after.primary || (log.block === after.primary && FIRST_LOG + log.index > after.secondary)

/**
 * The events of logs in order, for the interests of `routing` and behind `after`.
 *
 * @param timestampOf the timestamp of a block whose logs do not tell it
 */
export const toEvents = (
  logs: ReadonlyArray<Log>,
  routing: Routing,
  timestampOf: (block: number) => number,
  after: Cursor,
): ReadonlyArray<SourceEvent> => {
  const events: Array<SourceEvent> = []
  let block: BlockFields | undefined
  for (const log of logs) {
    const topic0 = log.topics[0]
    if (topic0 === undefined || !isBehind(log, after)) continue
    for (const { shape, interests } of routing.routes(topic0.toLowerCase(), log.topics.length, log.address)) {
      if (block === undefined || block.number !== log.block)
        block = { number: log.block, hash: log.blockHash, timestamp: log.timestamp ?? timestampOf(log.block) }
      events.push(new LogEvent(log, shape, interests, block))
    }
  }
  return events
}
