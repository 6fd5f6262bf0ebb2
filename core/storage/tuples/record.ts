import type { SourceRecord } from "../../plugin/source.ts"

/** A record of a source as its columns are read. */
export type RecordTuple = readonly [key: string, value: string, primary: number, secondary: number]

export const toRecord = ([key, value, primary, secondary]: RecordTuple): SourceRecord => ({
  key,
  value,
  cursor: { primary, secondary },
})
