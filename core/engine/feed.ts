import { Context, type Effect, Layer, type Stream } from "effect"
import type { StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import type { InvalidPosition, StalePosition } from "./error.ts"
import type { FeedHub } from "./feed/hub.ts"
import type { FeedItem, FeedRequest, MatchesRequest, MatchPage } from "./feed/item.ts"
import { defaultLimits, makeFeed } from "./feed/make.ts"
import type { CheckpointView } from "./resources.ts"

export type * from "./feed/item.ts"

/** The durable, ordered, bounded log of matches and retractions. */
export class Feed extends Context.Service<
  Feed,
  {
    /**
     * Items behind `after`, then live ones. The position is fixed when this effect succeeds, so that nothing after it
     * is missed however late the stream is pulled. The stream fails with StalePosition when items that it should still
     * show are trimmed before its reader gets to them.
     */
    readonly open: (
      request: FeedRequest,
    ) => Effect.Effect<
      Stream.Stream<FeedItem, StalePosition | StorageError>,
      StalePosition | InvalidPosition | StorageError
    >
    /** The present checkpoint of each network first, then each advance (coalesced when the reader is slow). */
    readonly checkpoints: (network?: string) => Stream.Stream<CheckpointView, StorageError>
    /** What is still held and no retraction took back: one network after the other, each oldest first. */
    readonly matches: (
      request: MatchesRequest,
    ) => Effect.Effect<MatchPage, StalePosition | InvalidPosition | StorageError>
  }
>()("blockwatcher/Feed") {
  static readonly layer: Layer.Layer<Feed, StorageError, Storage | FeedHub> = Layer.effect(
    Feed,
    makeFeed(defaultLimits),
  )
}
