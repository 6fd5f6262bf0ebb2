import type { RpcFailure } from "./errors.ts"

/** How many blocks one provider is asked for at once. */
export interface RangeSize {
  /** The count for the next request. */
  readonly blocks: number
  /** The greatest count that the provider is known to serve; growth stops there. */
  readonly cap: number
}

export const initialRange = (max: number): RangeSize => ({ blocks: max, cap: max })

/** Beyond this many logs in an answer, the range stops growing; at twice as many it shrinks. */
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

/** The size after `asked` blocks brought `logs`. */
export const adaptRange = (range: RangeSize, asked: number, logs: number): RangeSize => {
  if (logs >= 2 * ENOUGH_LOGS && asked <= range.blocks) return { ...range, blocks: Math.max(1, Math.floor(asked / 2)) }
  if (logs >= ENOUGH_LOGS || asked < range.blocks) return range
  return { ...range, blocks: Math.min(range.cap, range.blocks + Math.max(1, range.blocks >> 1)) }
}
