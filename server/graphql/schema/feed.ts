import { Effect, Stream } from "effect"
import {
  type CheckpointAdvanced,
  Feed,
  type FeedItem,
  type MatchEmitted,
  type MatchRetracted,
} from "../../../core/engine/feed.ts"
import { builder } from "../builder.ts"
import { defined } from "../input.ts"
import { subscribe } from "../run.ts"
import { CheckpointType } from "./checkpoint.ts"
import { CursorType } from "./cursor.ts"
import { MatchType } from "./match.ts"

const FeedItemType = builder.interfaceRef<FeedItem>("FeedItem").implement({
  description: "One item of the feed: the durable, ordered log of matches and retractions.",
  resolveType: (item) => item._tag,
  fields: (t) => ({
    position: t.exposeString("position", { description: "Opaque; pass it as `after` to continue behind this item." }),
    network: t.exposeID("network", { description: "The network that it is of." }),
  }),
})

const MatchEmittedType = builder.objectRef<MatchEmitted>("MatchEmitted").implement({
  description: "A match was found.",
  interfaces: [FeedItemType],
  fields: (t) => ({
    match: t.field({ type: MatchType, description: "The match.", resolve: (item) => item.match }),
    life: t.exposeInt("life", {
      description: "From 1. A match that was taken back and came true again has the next one.",
    }),
    emission: t.exposeID("emission", { nullable: true, description: "Common to the members of a gate's digest." }),
    late: t.exposeBoolean("late", { description: "Whether it was found behind the network's checkpoint." }),
  }),
})

const MatchRetractedType = builder.objectRef<MatchRetracted>("MatchRetracted").implement({
  description: "A match is taken back: the chain dropped the block that it was in, or an operator rewound the network.",
  interfaces: [FeedItemType],
  fields: (t) => ({
    monitor: t.exposeID("monitor", { description: "The monitor that had matched." }),
    matchId: t.exposeID("matchId", { description: "The match's id." }),
    life: t.exposeInt("life", { description: "The life of the match that ended." }),
    cursor: t.field({
      type: CursorType,
      description: "Where the match had been found.",
      resolve: (item) => item.cursor,
    }),
  }),
})

builder.objectRef<CheckpointAdvanced>("CheckpointAdvanced").implement({
  description:
    "A network's checkpoint moved. Live only and coalesced: its position is that of the newest item before it.",
  interfaces: [FeedItemType],
  fields: (t) => ({
    checkpoint: t.field({
      type: CheckpointType,
      description: "The new checkpoint.",
      resolve: (item) => item.checkpoint,
    }),
  }),
})

const AFTER =
  'Null is from now, "0" the oldest item kept, else the `position` of an item of a subscription with the same `network`. STALE_POSITION, with `extensions.oldest`, when items behind it are no longer kept.'

const isMatchEmitted = (item: FeedItem): item is MatchEmitted => item._tag === "MatchEmitted"
const isMatchRetracted = (item: FeedItem): item is MatchRetracted => item._tag === "MatchRetracted"

builder.subscriptionFields((t) => {
  const filter = {
    network: t.arg.id({ required: false, description: "Only items of this network." }),
    monitor: t.arg.id({ required: false, description: "Only items of this monitor." }),
    after: t.arg.string({ required: false, description: AFTER }),
  }
  return {
    matches: t.field({
      type: MatchEmittedType,
      description: "Each match, as it is found.",
      args: filter,
      subscribe: (_, { network, monitor, after }, context) =>
        subscribe(
          context,
          Feed.use((feed) =>
            feed.open({ ...defined({ network, monitor }), kinds: ["MatchEmitted"], after: after ?? null }),
          ).pipe(Effect.map(Stream.filter(isMatchEmitted))),
        ),
      resolve: (item) => item,
    }),
    retractions: t.field({
      type: MatchRetractedType,
      description: "Each match that is taken back.",
      args: filter,
      subscribe: (_, { network, monitor, after }, context) =>
        subscribe(
          context,
          Feed.use((feed) =>
            feed.open({ ...defined({ network, monitor }), kinds: ["MatchRetracted"], after: after ?? null }),
          ).pipe(Effect.map(Stream.filter(isMatchRetracted))),
        ),
      resolve: (item) => item,
    }),
    checkpoints: t.field({
      type: CheckpointType,
      description: "The present checkpoint of each network first, then each advance; coalesced for a slow reader.",
      args: { network: t.arg.id({ required: false, description: "Only the checkpoint of this network." }) },
      subscribe: (_, { network }, context) =>
        subscribe(
          context,
          Feed.useSync((feed) => feed.checkpoints(network ?? undefined)),
        ),
      resolve: (checkpoint) => checkpoint,
    }),
    feed: t.field({
      type: FeedItemType,
      description: "Matches, retractions and checkpoints in one order.",
      args: filter,
      subscribe: (_, { network, monitor, after }, context) =>
        subscribe(
          context,
          Feed.use((feed) =>
            feed.open({
              ...defined({ network, monitor }),
              kinds: ["MatchEmitted", "MatchRetracted", "CheckpointAdvanced"],
              after: after ?? null,
            }),
          ),
        ),
      resolve: (item) => item,
    }),
  }
})
