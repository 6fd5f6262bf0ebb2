import { Effect, Layer, Stream } from "effect"
import { Feed, type FeedItem, type FeedRequest } from "../../../core/engine/feed.ts"
import { FeedHub } from "../../../core/engine/feed/hub.ts"
import { type FeedLimits, makeFeed } from "../../../core/engine/feed/make.ts"
import type { Storage } from "../../../core/storage/storage.ts"

export const everything: FeedRequest["kinds"] = ["MatchEmitted", "MatchRetracted", "CheckpointAdvanced"]
export const items: FeedRequest["kinds"] = ["MatchEmitted", "MatchRetracted"]

/** The feed over a storage, with a log and pages of these sizes. */
export const feedLayer = <E>(storage: Layer.Layer<Storage, E>, limits: FeedLimits) =>
  Layer.effect(Feed, makeFeed(limits)).pipe(Layer.provideMerge(FeedHub.layer), Layer.provide(storage))

/** The next `count` items of a subscription. */
export const take = (request: FeedRequest, count: number) =>
  Feed.use((feed) => feed.open(request)).pipe(
    Effect.flatMap((stream) => stream.pipe(Stream.take(count), Stream.runCollect)),
  )

/** An item in short: `a+1` for the match of that id, `a-1` for its retraction, `a@3` for a checkpoint at 3. */
export const short = (item: FeedItem): string => {
  switch (item._tag) {
    case "MatchEmitted":
      return `+${item.match.id}`
    case "MatchRetracted":
      return `-${item.matchId}`
    case "CheckpointAdvanced":
      return `${item.network}@${item.checkpoint.cursor.primary}`
  }
}
