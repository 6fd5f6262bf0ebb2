import { Schema } from "effect"

/**
 * A position in a source's feed: `primary` first, then `secondary`.
 *
 * On EVM chains `primary` is the block number; `secondary` 0 is the block itself, `1 + i` transaction `i`, and
 * `2^20 + i` log `i`. Both are safe integers, so that they compare without allocation.
 */
export interface Cursor {
  readonly primary: number
  readonly secondary: number
}

/** The greatest secondary: a cursor with it stands behind everything of its primary. */
export const MAX_SECONDARY = 2_147_483_647

export const Cursor = Schema.Struct({
  primary: Schema.Int,
  secondary: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: MAX_SECONDARY })),
})

/** Negative, zero or positive as `a` stands before, at or behind `b`. */
export const compareCursors = (a: Cursor, b: Cursor): number => a.primary - b.primary || a.secondary - b.secondary

export const isAfter = (a: Cursor, b: Cursor): boolean => compareCursors(a, b) > 0

export const minCursor = (a: Cursor, b: Cursor): Cursor => (compareCursors(a, b) <= 0 ? a : b)

/** The cursor behind everything of `primary`. */
export const endOf = (primary: number): Cursor => ({ primary, secondary: MAX_SECONDARY })

/** The cursor right before everything of `primary`: the end of the primary before it, −1 for the first. */
export const startOf = (primary: number): Cursor => endOf(primary - 1)

/** The first primary of which something lies behind the cursor. */
export const nextOf = ({ primary, secondary }: Cursor): number => (secondary === MAX_SECONDARY ? primary + 1 : primary)

export const formatCursor = (cursor: Cursor): string =>
  cursor.secondary === MAX_SECONDARY ? `${cursor.primary}` : `${cursor.primary}:${cursor.secondary}`
