import type { StoredFeedItem } from "../../storage/feed-item.ts"
import type { Advance } from "./hub.ts"
import { Signal } from "./signal.ts"
import { SharedItem } from "./view.ts"

/** The payloads that are held, in UTF-16 code units. */
const SIZE_LIMIT = 8 * 1024 * 1024

/**
 * The newest items of all networks in one order, as the shared reader read them: a ring in memory, bounded by number
 * and size. Entries are numbered from 0 on; those from `start` to before `end` are held.
 *
 * Of each network the ring holds, without a gap, what lies behind its floor and not behind its `read`. So who has read
 * every network at least up to its floor can go on from `start`, and pass over what it knows.
 */
export class LiveLog {
  /** How far each network was read. */
  readonly read = new Map<string, number>()
  /** The position of the newest item of each network that is no longer held; 0 for a network that it does not name. */
  readonly floors = new Map<string, number>()
  /** The newest checkpoint of each network all of whose items were read. */
  readonly checkpoints = new Map<string, Advance>()
  readonly changed = new Signal()
  /** How many subscriptions run; without one nothing needs to be read. */
  subscribers = 0

  readonly #capacity: number
  readonly #ring: Array<SharedItem | undefined>
  #start = 0
  #end = 0
  #size = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#ring = Array.from({ length: capacity })
  }

  get start(): number {
    return this.#start
  }

  get end(): number {
    return this.#end
  }

  at(index: number): SharedItem {
    return this.#ring[index % this.#capacity]!
  }

  /** Appends what follows in a network, which is then read up to `upTo`. */
  append(network: string, items: ReadonlyArray<StoredFeedItem>, upTo: number): void {
    for (const item of items) {
      if (this.#end - this.#start === this.#capacity) this.#evict()
      this.#ring[this.#end % this.#capacity] = new SharedItem(item)
      this.#end++
      this.#size += sizeOf(item)
      while (this.#size > SIZE_LIMIT) this.#evict()
    }
    this.read.set(network, upTo)
  }

  /** Lets all entries go and counts the networks as read up to these positions. */
  skipTo(positions: ReadonlyMap<string, number>): void {
    while (this.#start < this.#end) this.#evict()
    for (const [network, position] of positions) {
      this.read.set(network, position)
      this.floors.set(network, position)
    }
  }

  #evict(): void {
    const slot = this.#start % this.#capacity
    const { stored } = this.#ring[slot]!
    this.#ring[slot] = undefined
    this.#start++
    this.#size -= sizeOf(stored)
    this.floors.set(stored.network, stored.position)
  }
}

const sizeOf = (item: StoredFeedItem): number => (item.kind === "match" ? item.payload.length : 0)
