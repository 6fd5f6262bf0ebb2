import type { Tracer } from "effect"
import type { DeliveryRow } from "../storage/storage.ts"
import type { Slot } from "./tracker.ts"

/** An owed row on its way, with the slot that waits for it. */
export interface WorkItem {
  readonly row: DeliveryRow
  readonly slot: Slot | null
  /** In which its row was written; null if nobody knows any more, or nobody reads spans. */
  readonly span: Tracer.AnySpan | null
}
