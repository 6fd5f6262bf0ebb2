import type { MatchItem, RetractedItem, StoredFeedItem } from "../feed-item.ts"

/** A match in the feed, in the order of the columns that both databases select. */
export type MatchTuple = readonly [
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

/** A retraction in the feed, likewise. */
export type RetractedTuple = readonly [
  position: number,
  life: number,
  matchId: string,
  monitor: string,
  primary: number,
  secondary: number,
]

export const toMatchItem =
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

export const toRetractedItem =
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

/** One page of both kinds, in position order. */
export const mergeItems = (
  matches: ReadonlyArray<MatchItem>,
  retracted: ReadonlyArray<RetractedItem>,
  limit: number,
): ReadonlyArray<StoredFeedItem> =>
  retracted.length === 0
    ? matches
    : [...matches, ...retracted].toSorted((a, b) => a.position - b.position).slice(0, limit)
