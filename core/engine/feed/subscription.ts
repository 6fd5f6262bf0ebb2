import { Effect } from "effect"
import type { StorageError } from "../../storage/error.ts"
import type { Storage } from "../../storage/storage.ts"
import type { StalePosition } from "../error.ts"
import type { FeedItem } from "./item.ts"
import type { LiveLog } from "./live-log.ts"
import { encodePosition, type ItemFilter, type Positions, staleness, wouldShow } from "./position.ts"
import { SharedItem } from "./view.ts"

/** Where a subscription begins, as it was fixed when it was accepted. */
export interface Acceptance {
  readonly positions: Positions
  /** Checkpoint advances with a higher version are shown; null shows none. */
  readonly checkpointsAfter: number | null
}

/**
 * One reader of the feed. It reads from the shared log while that holds all that comes next, else pages from storage.
 * Nothing is queued for it: a reader that is slow, or rests, costs nothing and holds up nobody.
 */
export class Subscription {
  readonly #store: Storage["Service"]
  readonly #log: LiveLog
  readonly #filter: ItemFilter
  readonly #page: number
  /** How far each network was read: shown or passed over. */
  readonly #positions: Map<string, number>
  /** The token of the last item that was shown, at first that of the acceptance. */
  #token: string
  /** The next entry of the log, or null while pages are read from storage. */
  #next: number | null = null
  /** Whose page was read last, so that networks take turns. */
  #turn = ""
  readonly #checkpointsAfter: number | null
  readonly #checkpointsSeen = new Map<string, number>()

  constructor(store: Storage["Service"], log: LiveLog, filter: ItemFilter, accepted: Acceptance, page: number) {
    this.#store = store
    this.#log = log
    this.#filter = filter
    this.#page = page
    this.#positions = new Map(accepted.positions)
    this.#token = encodePosition(filter.network, this.#positions)
    this.#checkpointsAfter = accepted.checkpointsAfter
  }

  /** The next items, at least one; waits until there are some. */
  readonly pull: Effect.Effect<readonly [FeedItem, ...Array<FeedItem>], StalePosition | StorageError> = Effect.gen(
    { self: this },
    function* () {
      while (true) {
        const changed = this.#log.changed.next
        this.#join()
        const items = this.#next === null ? yield* this.#pageFromStorage() : this.#takeFromLog(this.#next)
        this.#addCheckpoints(items)
        const [first, ...rest] = items
        if (first !== undefined) return [first, ...rest] as const
        if (this.#next === this.#log.end) yield* changed
      }
    },
  )

  #concerns(network: string): boolean {
    return this.#filter.network === undefined || this.#filter.network === network
  }

  /** Decides where to go on: in the log when nothing is missing there, else in storage. */
  #join(): void {
    if (this.#next !== null && this.#next < this.#log.start) this.#next = null
    if (this.#next !== null) return
    for (const [network, floor] of this.#log.floors)
      if (this.#concerns(network) && (this.#positions.get(network) ?? 0) < floor) return
    this.#next = this.#log.start
  }

  #takeFromLog(from: number): Array<FeedItem> {
    const items: Array<FeedItem> = []
    let next = from
    while (next < this.#log.end && items.length < this.#page) this.#take(this.#log.at(next++), items)
    this.#next = next
    return items
  }

  /** Passes an item, and shows it if it is new to this subscription and its filter lets it through. */
  #take(item: SharedItem, items: Array<FeedItem>): void {
    const { network, position } = item.stored
    if (!this.#concerns(network) || position <= (this.#positions.get(network) ?? 0)) return
    this.#positions.set(network, position)
    if (!wouldShow(this.#filter, network, item.stored)) return
    this.#token = encodePosition(this.#filter.network, this.#positions)
    items.push(item.show(this.#token))
  }

  /** One page of the network whose turn it is. */
  #pageFromStorage = Effect.fnUntraced({ self: this }, function* (this: Subscription) {
    const items: Array<FeedItem> = []
    const network = this.#nextBehind()
    if (network === undefined) return items
    this.#turn = network
    const upTo = this.#log.read.get(network)!
    const after = this.#positions.get(network)
    const { monitor, kinds } = this.#filter
    if (kinds.length > 0) {
      const stored = yield* this.#store.feedPage({
        network,
        kinds,
        after: after ?? 0,
        upTo,
        limit: this.#page,
        ...(monitor === undefined ? {} : { monitor }),
      })
      if (after !== undefined) {
        // Read behind the page: what was trimmed before the page was read is told by these states.
        const stale = staleness(this.#positions, this.#filter, yield* this.#store.feedStates(network))
        if (stale !== null) return yield* stale
      }
      for (const item of stored) this.#take(new SharedItem(item), items)
      if (stored.length === this.#page) return items
    }
    this.#positions.set(network, upTo)
    return items
  })

  /** The first network behind the one that had its turn, in the order of their ids, that is not read up to the log's end. */
  #nextBehind(): string | undefined {
    const behind = Array.from(this.#log.read)
      .filter(([network, upTo]) => this.#concerns(network) && (this.#positions.get(network) ?? 0) < upTo)
      .map(([network]) => network)
      .toSorted()
    return behind.find((network) => network > this.#turn) ?? behind[0]
  }

  /** Shows the newest checkpoint of each network whose items have all been passed, once. */
  #addCheckpoints(items: Array<FeedItem>): void {
    if (this.#checkpointsAfter === null) return
    for (const [network, { view, after, version }] of this.#log.checkpoints) {
      if (!this.#concerns(network) || version <= (this.#checkpointsSeen.get(network) ?? this.#checkpointsAfter))
        continue
      if ((this.#positions.get(network) ?? 0) < after) continue
      this.#checkpointsSeen.set(network, version)
      items.push({ _tag: "CheckpointAdvanced", position: this.#token, network, checkpoint: view })
    }
  }
}
