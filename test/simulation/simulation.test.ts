import { assert, describe, it } from "@effect/vitest"
import { runSeed } from "./run-seed.ts"

/** Seeds that found faults once. */
const KEPT = [7, 13, 54, 80, 177, 446]

/** Some of each kind of world. */
const SEEDS = [1, 2, 4, 5]

describe("the whole system over a simulated chain", () => {
  for (const seed of [...SEEDS, ...KEPT]) {
    it(`keeps its promises whatever happens (seed ${seed})`, async () => {
      assert.deepStrictEqual([...(await runSeed(seed))], [])
    })
  }
})
