/** The seed of a run's random choices: BLOCKWATCHER_TEST_SEED, so that a failed run can be looked at again, or a new one. */
export const seed = Number(process.env["BLOCKWATCHER_TEST_SEED"] ?? Date.now() % 1_000_000)

/** Whether the run may take its time. */
export const isSoak = process.env["BLOCKWATCHER_TEST_SOAK"] !== undefined

/** Random choices that a seed decides; `stream` keeps those of different parts of a test apart. */
export interface Choices {
  /** A number in [0, 1). */
  readonly next: () => number
  /** An integer from `least` to `most`. */
  readonly between: (least: number, most: number) => number
  /** True in so many of 1 cases. */
  readonly chance: (share: number) => boolean
}

export const choices = (stream: number): Choices => {
  let state = (seed * 31 + stream) >>> 0
  // mulberry32: small, and good enough to pick moments.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return { next, between, chance: (share) => next() < share }
}
