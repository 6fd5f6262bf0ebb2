import type { RecordType } from "../../../../core/model/fields.ts"

/** The transaction of an event. */
export const transactionFields: RecordType = {
  kind: "record",
  fields: { hash: { kind: "bytes" }, index: { kind: "number" } },
}

/** The block of an event. */
export const blockFields: RecordType = {
  kind: "record",
  fields: { number: { kind: "number" }, hash: { kind: "bytes" }, timestamp: { kind: "number" } },
}
