import type { FeedPage, FeedState, StoredFeedItem } from "../feed-item.ts"
import { type MatchTuple, mergeItems, type RetractedTuple, toMatchItem, toRetractedItem } from "../tuples/feed-item.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

/** Prepares the reads of the feed. */
export const makeFeedReads = (native: Native) => {
  const matches = rows<MatchTuple>(native, sql.feedMatches)
  const matchesOf = rows<MatchTuple>(native, sql.feedMatchesOf)
  const retracted = rows<RetractedTuple>(native, sql.feedRetracted)
  const retractedOf = rows<RetractedTuple>(native, sql.feedRetractedOf)
  const state = rows<readonly [network: string, position: number]>(native, sql.feedState)
  const states = rows<readonly [network: string, position: number]>(native, sql.feedStates)
  const trims = rows<readonly [monitor: string, kind: "match" | "retracted", position: number]>(native, sql.trims)

  const matchItems = ({ network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit, standing }: FeedPage) => {
    const ended = standing === true ? 0 : 1
    const found =
      monitor === undefined
        ? matches.all(network, after, upTo, ended, limit)
        : matchesOf.all(network, monitor, after, upTo, ended, limit)
    return found.map(toMatchItem(network))
  }

  const retractedItems = ({ network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit }: FeedPage) => {
    const found =
      monitor === undefined
        ? retracted.all(network, after, upTo, limit)
        : retractedOf.all(network, monitor, after, upTo, limit)
    return found.map(toRetractedItem(network))
  }

  return {
    page: (page: FeedPage): ReadonlyArray<StoredFeedItem> => {
      const shown = page.kinds.includes("match") ? matchItems(page) : []
      const ended = page.kinds.includes("retracted") ? retractedItems(page) : []
      return mergeItems(shown, ended, page.limit)
    },

    states: (network?: string): ReadonlyArray<FeedState> =>
      (network === undefined ? states.all() : state.all(network)).map(([id, position]) => ({
        network: id,
        position,
        trims: trims.all(id).map(([monitor, kind, trimmed]) => ({ monitor, kind, position: trimmed })),
      })),
  }
}
