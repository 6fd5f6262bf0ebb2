import { type BloomBits, bloomBits, mayHold } from "./bloom.ts"
import type { ListedEvent } from "./log-bucket.ts"
import type { Log } from "./logs.ts"

type Bits = () => BloomBits

/** Logs that some interest waits for. */
interface Expectation {
  /** Keys of what is expected; a log that has one of them was not missing. */
  readonly keys: ReadonlyArray<string>
  /** The bits of the addresses, and of what each topic may be; of each list the bloom of a block with such a log holds one. */
  readonly bits: ReadonlyArray<ReadonlyArray<Bits>>
}

const lazily = <A>(compute: () => A): (() => A) => {
  let value: A | undefined
  return () => (value ??= compute())
}

/** What a log says, by its address and by each of its topics, as keys; what is known by its first topic goes with that. */
const keysOf = ({ address, topics }: Log): ReadonlyArray<string> => {
  const values = topics.map((topic) => topic.toLowerCase())
  const topic0 = values[0] ?? ""
  return [
    topic0,
    `${topic0}${address}`,
    address,
    ...values.flatMap((value, i) => [`${i}${value}`, `${i}${value}${topic0}`]),
  ]
}

/** The keys of logs of an event, by the last topic that tells them apart, else by their addresses. */
const expectedKeys = ({ event, addresses }: ListedEvent): ReadonlyArray<string> => {
  const { topic0, filter } = event
  const place = filter.findLastIndex((values) => values !== null)
  if (place > 0 || (place === 0 && topic0 === null))
    return filter[place]!.map((value) => `${place}${value}${topic0 ?? ""}`)
  return addresses === null ? [topic0 ?? ""] : addresses.map((address) => `${topic0 ?? ""}${address}`)
}

const expectationOf = (listed: ListedEvent): Expectation => ({
  keys: expectedKeys(listed),
  bits: [...listed.event.filter, listed.addresses].flatMap((values) =>
    values === null ? [] : [values.map((value) => lazily(() => bloomBits(value)))],
  ),
})

/** Tells from a block's bloom that logs are missing. Only a hint: a bloom can announce what is not there. */
export class LogExpectations {
  readonly #expectations: ReadonlyArray<Expectation>

  constructor(listed: ReadonlyArray<ListedEvent>) {
    const distinct = new Map<string, ListedEvent>()
    for (const one of listed) distinct.set(JSON.stringify([one.addresses, one.event.filter]), one)
    this.#expectations = [...distinct.values()].map(expectationOf)
  }

  /** Whether the bloom of a block announces logs that some interest wants and of which none is among these. */
  misses(bloom: string, logs: ReadonlyArray<Log>): boolean {
    if (this.#expectations.length === 0) return false
    const seen = new Set(logs.flatMap(keysOf))
    return this.#expectations.some(
      ({ keys, bits }) =>
        !keys.some((key) => seen.has(key)) && bits.every((values) => values.some((bitsOf) => mayHold(bloom, bitsOf()))),
    )
  }
}
