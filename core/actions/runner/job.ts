import type { Claimed } from "../store/claim.ts"
import type { Held } from "../store/deliveries.ts"
import type { RecordedCall, RunId } from "../store/records.ts"
import type { Store } from "../store/store.ts"

/** A delivery that was claimed and is to be run. */
export interface Job {
  /** Where its event stands. */
  readonly store: Store
  readonly claimed: Claimed
  readonly held: Held
  /** Its number is one of the store that actions write. */
  readonly run: RunId
  /** Whether it was dealt with before. */
  readonly handled: boolean
  readonly calls: ReadonlyArray<RecordedCall>
}

/** The id by which a delivery is shown. */
export const shownId = (store: string, pk: number): string => `${store}:${pk}`
