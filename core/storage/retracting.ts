import { type Cursor, compareCursors } from "../model/cursor.ts"
import type { NetworkRow } from "./network-row.ts"
import { StorageError } from "./error.ts"
import type { Invalidation, Retracted } from "./storage.ts"

export type InvalidationTuple = readonly [primary: number, secondary: number, cause: string, retracted: number]

export const toInvalidation = (tuple: InvalidationTuple | undefined): Invalidation | null => {
  if (tuple === undefined) return null
  const [primary, secondary, cause, retracted] = tuple
  return { from: { primary, secondary }, cause, retracted: retracted === 1 }
}

/** A match that has not ended; `position` is its place in the feed, `kept…` the cursor of its emission's newest member. */
export type StandingTuple = readonly [
  pk: number,
  primary: number,
  secondary: number,
  position: number | null,
  keptPrimary: number | null,
  keptSecondary: number | null,
]

/** Where the next step goes on: what lies between `from` and it has ended, and need not be looked at again. */
interface Reached {
  readonly epoch: number
  readonly from: Cursor
  readonly next: Cursor
}

/** What a step did, and how far it came. */
export interface Step {
  readonly retracted: Retracted
  readonly reached: Reached | null
}

/** The step of a network that has nothing to take back. */
export const noStep = (network: NetworkRow): Step => ({
  retracted: { matches: 0, done: true, feedPosition: network.feedPosition, shown: 0 },
  reached: null,
})

/** The cursor right behind another. */
export const behind = ({ primary, secondary }: Cursor): Cursor => ({ primary, secondary: secondary + 1 })

/**
 * How far the steps of this process came, network by network, so that each need not begin at the proven point again. Kept
 * in memory alone: who does not know begins there.
 */
export class RetractProgress {
  readonly #reached = new Map<string, Reached>()

  /** Where to look for matches that stand. */
  next(network: NetworkRow, from: Cursor): Cursor {
    const known = this.#reached.get(network.id)
    return known !== undefined && known.epoch === network.epoch && compareCursors(known.from, from) === 0
      ? known.next
      : behind(from)
  }

  /** Keeps how far a step came; only once it is committed. */
  remember(network: string, { reached, retracted }: Step): Retracted {
    if (reached === null) this.#reached.delete(network)
    else this.#reached.set(network, reached)
    return retracted
  }
}

/** Nothing may be rewound before everything behind has ended: the caller skipped a step. */
export const stillStanding = (network: string): StorageError =>
  new StorageError({
    operation: "rewind",
    reason: `matches of network ${network} are still standing that its invalidation takes back`,
    retryable: false,
  })
