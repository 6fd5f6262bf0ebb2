import type { NewDelivery } from "../minted-rows.ts"
import type { Value } from "./native.ts"
import { storable } from "./text.ts"

/** Deliveries on their way in, a column an array, in the order of the statements' parameters. */
export const deliveryValues = (rows: ReadonlyArray<NewDelivery>): ReadonlyArray<Value> => [
  rows.map(({ seq }) => seq),
  rows.map(({ sink }) => sink),
  rows.map(({ pk }) => pk),
  rows.map(({ cursor }) => cursor.primary),
  rows.map(({ cursor }) => cursor.secondary),
  rows.map(({ state }) => state),
  rows.map(({ slot }) => (slot ? 1 : 0)),
  rows.map(({ digest }) => digest),
  rows.map(({ dead }) => dead?.died ?? null),
  rows.map(({ dead }) => dead?.monitor ?? null),
  rows.map(({ dead }) => (dead === null ? null : storable(dead.reason))),
]
