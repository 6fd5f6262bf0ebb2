import { Effect, Layer, Stream } from "effect"
import type { Cursor } from "../../../core/model/cursor.ts"
import { encodePayload } from "../../../core/model/sink-event.ts"
import { StorageError } from "../../../core/storage/error.ts"
import type { FeedState, StoredFeedItem } from "../../../core/storage/feed-item.ts"
import { type Pipeline, Storage } from "../../../core/storage/storage.ts"
import type { Written } from "./feed-follow.ts"

type Kind = "match" | "retracted"

/** The feed's tables in memory, for what nothing writes through `Storage` yet: retractions and exact trims. */
export class FeedTable implements Written {
  readonly kinds = ["match", "retracted"] as const
  readonly items = new Map<string, Array<StoredFeedItem>>()
  readonly trims = new Map<string, Array<{ monitor: string; kind: Kind; position: number }>>()
  readonly newest = new Map<string, number>()
  readonly checkpoints = new Map<string, { cursor: Cursor; at: number }>()
  /** Runs before a page is read. */
  beforePage: () => void = () => {}
  /** While set, reads fail with it. */
  broken: string | null = null
  pages = 0
  states = 0

  create(network: string): void {
    if (!this.newest.has(network)) this.newest.set(network, 0)
  }

  /** Appends one item and answers its position. */
  append(network: string, kind: Kind, matchId: string, monitor = "m"): number {
    const position = (this.newest.get(network) ?? 0) + 1
    this.newest.set(network, position)
    const common = { network, position, life: 1, matchId, monitor, cursor: { primary: position, secondary: 1 } }
    const payload = encodePayload({ id: matchId, monitor, network, event: { n: position } })
    const item: StoredFeedItem =
      kind === "match"
        ? { ...common, kind, emission: null, late: false, time: 1000 + position, payload }
        : { ...common, kind }
    this.#of(network).push(item)
    return position
  }

  /** Removes the items of a network up to a position, and notes it for each monitor and kind. */
  trim(network: string, upTo: number): void {
    const kept = this.#of(network).filter((item) => item.position > upTo)
    const gone = this.#of(network).filter((item) => item.position <= upTo)
    this.items.set(network, kept)
    const trims = this.trims.get(network) ?? []
    this.trims.set(network, trims)
    for (const { monitor, kind, position } of gone) {
      const known = trims.find((trim) => trim.monitor === monitor && trim.kind === kind)
      if (known === undefined) trims.push({ monitor, kind, position })
      else known.position = position
    }
  }

  #of(network: string): Array<StoredFeedItem> {
    const items = this.items.get(network) ?? []
    this.items.set(network, items)
    return items
  }

  readonly #read = <A>(value: () => A): Effect.Effect<A, StorageError> =>
    Effect.suspend(() =>
      this.broken === null
        ? Effect.succeed(value())
        : Effect.fail(new StorageError({ operation: "read", reason: this.broken, retryable: true })),
    ).pipe(Effect.tap(Effect.yieldNow))

  readonly layer: Layer.Layer<Storage> = Layer.mock(Storage, {
    database: "sqlite",
    feedPage: ({ network, monitor, kinds, after, upTo, limit, standing }) =>
      this.#read(() => {
        this.pages++
        this.beforePage()
        const all = this.#of(network)
        const ended = new Set(all.filter((item) => item.kind === "retracted").map((item) => item.matchId))
        return all
          .filter((item) => item.position > after && item.position <= (upTo ?? Number.MAX_SAFE_INTEGER))
          .filter((item) => kinds.includes(item.kind) && (monitor === undefined || item.monitor === monitor))
          .filter((item) => standing !== true || !ended.has(item.matchId))
          .slice(0, limit)
      }),
    feedGrowth: Stream.never,
    feedStates: (network) =>
      this.#read(() => {
        this.states++
        return Array.from(this.newest)
          .filter(([id]) => network === undefined || id === network)
          .map(([id, position]): FeedState => ({
            network: id,
            position,
            trims: (this.trims.get(id) ?? []).map((trim) => ({ ...trim })),
          }))
      }),
    pipeline: (network) =>
      this.#read((): Pipeline | null => {
        const position = this.newest.get(network)
        if (position === undefined) return null
        const checkpoint = this.checkpoints.get(network)
        const cursor = checkpoint?.cursor ?? null
        return {
          network,
          minted: cursor,
          checkpoint: cursor,
          checkpointAt: checkpoint?.at ?? 0,
          feedPosition: position,
          start: cursor,
          paused: false,
        }
      }),
  })
}
