import type { Cursor } from "../../model/cursor.ts"
import type { CheckpointView, MatchView } from "../resources.ts"

export type FeedItem = MatchEmitted | MatchRetracted | CheckpointAdvanced

export interface MatchEmitted {
  readonly _tag: "MatchEmitted"
  /** Opaque; pass it as `after` to continue behind this item. */
  readonly position: string
  readonly network: string
  readonly match: MatchView
  readonly life: number
  readonly emission: string | null
  readonly late: boolean
}

export interface MatchRetracted {
  readonly _tag: "MatchRetracted"
  readonly position: string
  readonly network: string
  readonly monitor: string
  readonly matchId: string
  readonly life: number
  readonly cursor: Cursor
}

/** Live only and coalesced: its position is that of the newest item before it. */
export interface CheckpointAdvanced {
  readonly _tag: "CheckpointAdvanced"
  readonly position: string
  readonly network: string
  readonly checkpoint: CheckpointView
}

export interface FeedRequest {
  readonly network?: string
  readonly monitor?: string
  readonly kinds: ReadonlyArray<FeedItem["_tag"]>
  /** null is from now, `"0"` the oldest kept, else the `position` of an item. */
  readonly after: string | null
}

export interface MatchesRequest {
  readonly network?: string
  readonly monitor?: string
  /** At least 1; more than 1000 are read as 1000. */
  readonly first: number
  /** null and `"0"` are the oldest kept, else the cursor of a page or the `position` of an item. */
  readonly after: string | null
}

export interface MatchPage {
  readonly items: ReadonlyArray<{ readonly cursor: string; readonly match: MatchView }>
  readonly hasNextPage: boolean
  /** Behind the last item; on the last page the bound that the first page fixed: a subscription may follow from it. */
  readonly endCursor: string
}
