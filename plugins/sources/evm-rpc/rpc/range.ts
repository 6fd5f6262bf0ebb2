import type { RpcFailure } from "./errors.ts"

/** How many blocks one provider is asked for at once. */
export interface RangeSize {
  /** The count for the next request. */
  readonly blocks: number
  /** The greatest count that the provider is known to serve; growth stops there. */
  readonly cap: number
}

/** The first request asks for so many blocks at most: nobody knows yet how many logs a block holds. */
const FIRST_BLOCKS = 100

export const initialRange = (max: number): RangeSize => ({ blocks: Math.min(max, FIRST_BLOCKS), cap: max })

/** An answer is to hold about so many logs: memory is bounded by logs, not by blocks. */
const ENOUGH_LOGS = 10_000

/** The size after a refusal of `asked` blocks that began at `from`: always smaller than `asked`, and at least 1. */
export const shrinkRange = (
  range: RangeSize,
  from: number,
  asked: number,
  failure: Pick<RpcFailure, "kind" | "hint">,
): RangeSize => {
  const { hint } = failure
  const half = Math.max(1, Math.floor(asked / 2))
  const told =
    failure.kind === "range"
      ? hint?.blocks
      : hint?.from === from && hint.to !== undefined
        ? hint.to - from + 1
        : undefined
  const blocks = told !== undefined && told >= 1 && told < asked ? told : half
  return {
    blocks: Math.min(range.blocks, blocks),
    cap: failure.kind === "range" ? Math.min(range.cap, blocks) : range.cap,
  }
}

/** The size after `asked` blocks brought `logs`: as many blocks as hold enough logs, at most half as many more than before. */
export const adaptRange = (range: RangeSize, asked: number, logs: number): RangeSize => {
  const fitting = logs === 0 ? range.cap : Math.max(1, Math.floor((asked * ENOUGH_LOGS) / logs))
  if (logs > ENOUGH_LOGS) return { ...range, blocks: Math.min(range.blocks, fitting) }
  const grown = range.blocks + Math.max(1, range.blocks >> 1)
  // The rest at the end of a round says nothing about the size that is asked for.
  return asked < range.blocks ? range : { ...range, blocks: Math.min(range.cap, grown, fitting) }
}
