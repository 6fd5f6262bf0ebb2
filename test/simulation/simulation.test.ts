import { assert, describe, it } from "@effect/vitest"
import { runSeed } from "./run-seed.ts"

/** Seeds that found faults once. */
const KEPT: ReadonlyArray<number> = []

const SEEDS = [1, 2, 3, 4]

describe("the whole system over a simulated chain", () => {
  for (const seed of [...SEEDS, ...KEPT]) {
    it(`keeps its promises whatever happens (seed ${seed})`, async () => {
      assert.deepStrictEqual([...(await runSeed(seed))], [])
    })
  }
})
