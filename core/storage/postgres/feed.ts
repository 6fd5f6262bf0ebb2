import { Effect } from "effect"
import type { FeedState, MatchItem, RetractedItem, StoredFeedItem } from "../storage.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { sql } from "./sql.ts"

type MatchTuple = readonly [
  position: number,
  life: number,
  emission: string | null,
  late: number,
  matchId: string,
  monitor: string,
  primary: number,
  secondary: number,
  time: number | null,
  payload: string,
]

type RetractedTuple = readonly [
  position: number,
  life: number,
  matchId: string,
  monitor: string,
  primary: number,
  secondary: number,
]

export interface FeedPage {
  readonly network: string
  readonly monitor?: string
  readonly kinds: ReadonlyArray<"match" | "retracted">
  readonly after: number
  readonly upTo?: number
  readonly limit: number
  readonly standing?: boolean
}

const matchItem =
  (network: string) =>
  ([position, life, emission, late, matchId, monitor, primary, secondary, time, payload]: MatchTuple): MatchItem => ({
    kind: "match",
    network,
    position,
    life,
    emission,
    late: late === 1,
    matchId,
    monitor,
    cursor: { primary, secondary },
    time,
    payload,
  })

const retractedItem =
  (network: string) =>
  ([position, life, matchId, monitor, primary, secondary]: RetractedTuple): RetractedItem => ({
    kind: "retracted",
    network,
    position,
    life,
    matchId,
    monitor,
    cursor: { primary, secondary },
  })

const matchItems = (session: Session, page: FeedPage) => {
  const { network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit } = page
  const values = [network, after, upTo, page.standing === true ? 0 : 1, limit]
  const found =
    monitor === undefined
      ? session.all<MatchTuple>(sql.feedMatches, values)
      : session.all<MatchTuple>(sql.feedMatchesOf, [...values, monitor])
  return Effect.map(found, (tuples) => tuples.map(matchItem(network)))
}

const retractedItems = (session: Session, page: FeedPage) => {
  const { network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit } = page
  const values = [network, after, upTo, limit]
  const found =
    monitor === undefined
      ? session.all<RetractedTuple>(sql.feedRetracted, values)
      : session.all<RetractedTuple>(sql.feedRetractedOf, [...values, monitor])
  return Effect.map(found, (tuples) => tuples.map(retractedItem(network)))
}

/** Items of a page, in position order. */
export const readFeedPage = Effect.fnUntraced(function* (
  session: Session,
  page: FeedPage,
): Effect.fn.Return<ReadonlyArray<StoredFeedItem>, QueryFailed> {
  const shown = page.kinds.includes("match") ? yield* matchItems(session, page) : []
  const ended = page.kinds.includes("retracted") ? yield* retractedItems(session, page) : []
  if (ended.length === 0) return shown
  return [...shown, ...ended].toSorted((a, b) => a.position - b.position).slice(0, page.limit)
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
