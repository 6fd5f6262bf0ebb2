const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 15_000
/** What a provider asks for is honoured up to here. */
export const LONGEST_RETRY_AFTER_MS = 60_000

/** The wait in ms after so many failures in a row: doubling, capped, at least what the provider asked for. */
export const waitAfter = (failures: number, retryAfterMs = 0): number =>
  Math.max(
    Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 16)),
    Math.min(LONGEST_RETRY_AFTER_MS, retryAfterMs),
  )
