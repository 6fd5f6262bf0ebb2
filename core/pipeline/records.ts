import { type Cursor, formatCursor, isAfter } from "../model/cursor.ts"
import type { RecordId, SourceRecord } from "../plugin/source.ts"

const MAX_KEY = 200
const MAX_VALUE = 1000

/** Whether a record is among those listed. */
export const isAmong = (listed: ReadonlyArray<RecordId>, { key, value }: RecordId): boolean =>
  listed.some((one) => one.key === key && one.value === value)

/** Throws for records that cannot be kept, or that lie behind the end of their batch: that is a fault of their source. */
export const checkRecords = (records: ReadonlyArray<SourceRecord> = [], upTo: Cursor | null = null): void => {
  for (const { key, value, cursor } of records) {
    if (key.length > MAX_KEY || value.length > MAX_VALUE)
      throw new Error(
        `the source recorded a key of ${key.length} and a value of ${value.length} characters; ` +
          `at most ${MAX_KEY} and ${MAX_VALUE} are kept`,
      )
    if (upTo !== null && isAfter(cursor, upTo))
      throw new Error(
        `the source recorded something at ${formatCursor(cursor)} in a batch that ends at ${formatCursor(upTo)}`,
      )
  }
}
