import { Bloom, type BloomBits, bloomBits } from "./bloom.ts"
import type { ListedEvent } from "./log-bucket.ts"
import type { Log } from "./logs.ts"

type Bits = () => BloomBits

/** Logs of one event that interests wait for: of certain addresses, or with certain values in a topic, or any. */
interface Expectation {
  /** What tells these logs apart, by the keys of logs that have it. Each is expected by itself. */
  readonly told: Map<string, string>
  readonly keys: () => ReadonlyArray<string>
  readonly bits: Bits
  /** The bits of what else such a log has; of each list the bloom of a block with such a log holds one. */
  readonly others: ReadonlyArray<Bits>
}

/** Where a bloom is expected to hold so many of the values by chance, it says nothing about them. */
const BY_CHANCE = 1

const lazily = <A>(compute: () => A): (() => A) => {
  let value: A | undefined
  return () => (value ??= compute())
}

const expectationOf = (others: ReadonlyArray<ReadonlyArray<string>>): Expectation => {
  const told = new Map<string, string>()
  return {
    told,
    keys: lazily(() => [...told.keys()]),
    bits: lazily(() => bloomBits([...told.values()])),
    others: others.map((values) => lazily(() => bloomBits(values))),
  }
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

/** The place of the last topic that tells logs of an event apart; -1 if none does beside their first. */
const tellingPlace = ({ topic0, filter }: ListedEvent["event"]): number => {
  const place = filter.findLastIndex((values) => values !== null)
  return place > 0 || (place === 0 && topic0 === null) ? place : -1
}

/** What tells the logs of an event apart, by the keys of logs that have it: the last topic that does, else their addresses. */
const toldBy = ({ event, addresses }: ListedEvent): ReadonlyArray<readonly [key: string, value: string]> => {
  const topic0 = event.topic0 ?? ""
  const place = tellingPlace(event)
  if (place !== -1) return event.filter[place]!.map((value) => [`${place}${value}${topic0}`, value])
  return addresses === null ? [[topic0, topic0]] : addresses.map((address) => [`${topic0}${address}`, address])
}

/** Everything else that a log of the event has. */
const otherLists = ({ event, addresses }: ListedEvent): ReadonlyArray<ReadonlyArray<string>> => {
  const place = tellingPlace(event)
  const isAddress = place === -1 && addresses !== null
  return [...event.filter.filter((_, i) => i !== place), isAddress ? null : addresses].filter((list) => list !== null)
}

/** Tells from a block's bloom that logs are missing. Only a hint: a bloom can announce what is not there. */
export class LogExpectations {
  readonly #expectations: ReadonlyArray<Expectation>

  constructor(listed: ReadonlyArray<ListedEvent>) {
    const byOthers = new Map<string, Expectation>()
    for (const one of listed) {
      const others = otherLists(one)
      const key = JSON.stringify([others, tellingPlace(one.event), one.event.topic0])
      let expectation = byOthers.get(key)
      if (expectation === undefined) byOthers.set(key, (expectation = expectationOf(others)))
      for (const [key, value] of toldBy(one)) expectation.told.set(key, value)
    }
    this.#expectations = [...byOthers.values()]
  }

  /** Whether the bloom of a block announces logs that some interest wants and of which none is among these. */
  misses(hex: string, logs: ReadonlyArray<Log>): boolean {
    if (this.#expectations.length === 0) return false
    const bloom = new Bloom(hex)
    const { byChance } = bloom
    const seen = lazily(() => new Set(logs.flatMap(keysOf)))
    return this.#expectations.some(({ told, keys, bits, others }) => {
      if (told.size * byChance > BY_CHANCE || others.some((bits) => bloom.find(bits()) === -1)) return false
      for (let i = bloom.find(bits()); i !== -1; i = bloom.find(bits(), i + 1)) if (!seen().has(keys()[i]!)) return true
      return false
    })
  }
}
