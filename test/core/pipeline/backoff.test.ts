import { assert, describe, it } from "vitest"
import { defaultRetry } from "../../../core/model/policy.ts"
import { backoffMs } from "../../../core/pipeline/backoff.ts"

/** The longest wait before each next attempt, by how many failed so far. */
const ceilings = (failed: ReadonlyArray<number>, retry = defaultRetry) =>
  failed.map((attempts) => backoffMs(retry, attempts, 1 - Number.EPSILON, null) + 1)

describe("the wait before the next attempt", () => {
  it("doubles from the first to the cap, which it never exceeds", () => {
    assert.deepStrictEqual(
      ceilings([1, 2, 3, 4, 5, 6, 7, 8, 9]),
      [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000],
    )
    assert.deepStrictEqual(
      ceilings([1, 2, 40, 5_000], { ...defaultRetry, initialBackoffMs: 30_000 }),
      [30_000, 30_000, 30_000, 30_000],
    )
  })

  it("is any part of that, so that sinks which failed together do not come back together", () => {
    assert.deepStrictEqual(
      [0, 0.25, 0.5, 0.999].map((random) => backoffMs(defaultRetry, 3, random, null)),
      [0, 200, 400, 799],
    )
  })

  it("is no shorter than the receiver asked for, up to five minutes", () => {
    assert.deepStrictEqual(
      [0, 700, 60_000, 300_000, 86_400_000, -5].map((retryAfter) => backoffMs(defaultRetry, 3, 0.5, retryAfter)),
      [400, 700, 60_000, 300_000, 300_000, 400],
    )
  })
})
