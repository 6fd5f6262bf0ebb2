import type { FeedState, MatchItem, RetractedItem, StoredFeedItem } from "../storage.ts"
import { type Native, rows } from "./native.ts"
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
    return found.map(matchItem(network))
  }

  const retractedItems = ({ network, monitor, after, upTo = Number.MAX_SAFE_INTEGER, limit }: FeedPage) => {
    const found =
      monitor === undefined
        ? retracted.all(network, after, upTo, limit)
        : retractedOf.all(network, monitor, after, upTo, limit)
    return found.map(retractedItem(network))
  }

  return {
    page: (page: FeedPage): ReadonlyArray<StoredFeedItem> => {
      const shown = page.kinds.includes("match") ? matchItems(page) : []
      const ended = page.kinds.includes("retracted") ? retractedItems(page) : []
      if (ended.length === 0) return shown
      return [...shown, ...ended].toSorted((a, b) => a.position - b.position).slice(0, page.limit)
    },

    states: (network?: string): ReadonlyArray<FeedState> =>
      (network === undefined ? states.all() : state.all(network)).map(([id, position]) => ({
        network: id,
        position,
        trims: trims.all(id).map(([monitor, kind, trimmed]) => ({ monitor, kind, position: trimmed })),
      })),
  }
}
