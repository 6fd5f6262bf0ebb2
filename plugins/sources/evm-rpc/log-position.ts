import type { Cursor } from "../../../core/model/cursor.ts"

/** The secondary of log 0; what lies below is the block itself and its transactions. */
export const FIRST_LOG = 2 ** 20

/** Where a log stands on the chain. */
export interface LogPosition {
  readonly block: number
  readonly index: number
}

export const cursorOfLog = ({ block, index }: LogPosition): Cursor => ({
  primary: block,
  secondary: FIRST_LOG + index,
})

export const positionOf = ({ primary, secondary }: Cursor): LogPosition => ({
  block: primary,
  index: secondary - FIRST_LOG,
})

/** Whether `a` stands before `b`. */
export const isBefore = (a: LogPosition, b: LogPosition): boolean =>
  a.block < b.block || (a.block === b.block && a.index < b.index)
