import type { Cursor } from "../model/cursor.ts"

/** What of a network's feed is read: items behind `after` and at or before `upTo`. */
export interface FeedPage {
  readonly network: string
  readonly monitor?: string
  readonly kinds: ReadonlyArray<"match" | "retracted">
  readonly after: number
  readonly upTo?: number
  readonly limit: number
  /** Leave out matches that a retraction took back. */
  readonly standing?: boolean
}

export interface MatchItem {
  readonly kind: "match"
  readonly network: string
  readonly position: number
  readonly life: number
  readonly emission: string | null
  readonly late: boolean
  readonly matchId: string
  readonly monitor: string
  readonly cursor: Cursor
  readonly time: number | null
  readonly payload: string
}

export interface RetractedItem {
  readonly kind: "retracted"
  readonly network: string
  readonly position: number
  readonly life: number
  readonly matchId: string
  readonly monitor: string
  readonly cursor: Cursor
}

export type StoredFeedItem = MatchItem | RetractedItem

/** The newest item of a network, and the newest one that was trimmed, for each monitor and kind. */
export interface FeedState {
  readonly network: string
  readonly position: number
  readonly trims: ReadonlyArray<{
    readonly monitor: string
    readonly kind: "match" | "retracted"
    readonly position: number
  }>
}
