import type { Match } from "../../model/sink-event.ts"
import type { MatchItem, StoredFeedItem } from "../../storage/feed-item.ts"
import type { MatchView } from "../resources.ts"
import type { FeedItem } from "./item.ts"

/** A match as it is shown, from its stored payload. */
export const matchView = (item: MatchItem): MatchView => {
  const { id, monitor, network, event } = JSON.parse(item.payload) as Match
  return { id, monitor, network, event, cursor: item.cursor, time: item.time }
}

/** A stored item that is shown to several subscribers: its payload is parsed once, when the first one needs it. */
export class SharedItem {
  readonly stored: StoredFeedItem
  #match: MatchView | null = null

  constructor(stored: StoredFeedItem) {
    this.stored = stored
  }

  show(position: string): FeedItem {
    const { stored } = this
    const { network, life } = stored
    if (stored.kind === "retracted") {
      const { monitor, matchId, cursor } = stored
      return { _tag: "MatchRetracted", position, network, monitor, matchId, life, cursor }
    }
    this.#match ??= matchView(stored)
    const { emission, late } = stored
    return { _tag: "MatchEmitted", position, network, match: this.#match, life, emission, late }
  }
}
