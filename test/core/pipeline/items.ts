import type { DeliveryRow } from "../../../core/storage/storage.ts"
import type { WorkItem } from "../../../core/pipeline/work-item.ts"

/** An owed row of a match, as a worker sees it. */
export const owedRow = (seq: number, over: Partial<DeliveryRow> = {}): DeliveryRow => ({
  seq,
  network: "test",
  sink: "mine",
  monitor: "all",
  matchId: `m${seq}`,
  life: 1,
  kind: "match",
  cursor: { primary: seq, secondary: 0 },
  state: "pending",
  digest: null,
  attempts: 0,
  slot: true,
  payload: "{}",
  ...over,
})

export const owedItem = (seq: number, over: Partial<DeliveryRow> = {}): WorkItem => ({
  row: owedRow(seq, over),
  slot: null,
  span: null,
})
