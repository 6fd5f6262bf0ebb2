import { Effect } from "effect"
import type { FeedPage, FeedState, StoredFeedItem } from "../feed-item.ts"
import { type MatchTuple, mergeItems, type RetractedTuple, toMatchItem, toRetractedItem } from "../tuples/feed-item.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { sql } from "./sql.ts"

const matchItems = (session: Session, page: FeedPage) => {
  const { network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit } = page
  const values = [network, after, upTo, page.standing === true ? 0 : 1, limit]
  const found =
    monitor === undefined
      ? session.all<MatchTuple>(sql.feedMatches, values)
      : session.all<MatchTuple>(sql.feedMatchesOf, [...values, monitor])
  return Effect.map(found, (tuples) => tuples.map(toMatchItem(network)))
}

const retractedItems = (session: Session, page: FeedPage) => {
  const { network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit } = page
  const values = [network, after, upTo, limit]
  const found =
    monitor === undefined
      ? session.all<RetractedTuple>(sql.feedRetracted, values)
      : session.all<RetractedTuple>(sql.feedRetractedOf, [...values, monitor])
  return Effect.map(found, (tuples) => tuples.map(toRetractedItem(network)))
}

/** Items of a page, in position order. */
export const readFeedPage = Effect.fnUntraced(function* (
  session: Session,
  page: FeedPage,
): Effect.fn.Return<ReadonlyArray<StoredFeedItem>, QueryFailed> {
  const shown = page.kinds.includes("match") ? yield* matchItems(session, page) : []
  const ended = page.kinds.includes("retracted") ? yield* retractedItems(session, page) : []
  return mergeItems(shown, ended, page.limit)
})

type TrimTuple = readonly [network: string, monitor: string, kind: "match" | "retracted", position: number]

export const readFeedStates = Effect.fnUntraced(function* (
  session: Session,
  network?: string,
): Effect.fn.Return<ReadonlyArray<FeedState>, QueryFailed> {
  const states = yield* network === undefined
    ? session.all<readonly [network: string, position: number]>(sql.feedStates, [])
    : session.all<readonly [network: string, position: number]>(sql.feedState, [network])
  const trims = Map.groupBy(yield* session.all<TrimTuple>(sql.trims, [states.map(([id]) => id)]), ([id]) => id)
  return states.map(([id, position]) => ({
    network: id,
    position,
    trims: (trims.get(id) ?? []).map(([, monitor, kind, trimmed]) => ({ monitor, kind, position: trimmed })),
  }))
})
