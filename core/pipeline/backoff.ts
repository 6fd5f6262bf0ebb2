import type { Retry } from "../model/policy.ts"

/** The longest wait that a receiver's `Retry-After` can impose, in ms. */
export const MAX_RETRY_AFTER_MS = 5 * 60_000

/**
 * The wait before the next attempt, in ms: full jitter (a uniform share of the exponential delay, which itself never
 * exceeds the cap; "Exponential Backoff And Jitter", AWS Architecture Blog), and never less than `Retry-After`.
 *
 * @param failed attempts that failed so far, at least 1
 * @param random uniform in [0, 1)
 */
export const backoffMs = (retry: Retry, failed: number, random: number, retryAfterMs: number | null): number => {
  const ceiling = Math.min(retry.maxBackoffMs, retry.initialBackoffMs * 2 ** Math.min(failed - 1, 30))
  const floor = Math.min(Math.max(retryAfterMs ?? 0, 0), MAX_RETRY_AFTER_MS)
  return Math.max(Math.floor(ceiling * random), floor)
}
