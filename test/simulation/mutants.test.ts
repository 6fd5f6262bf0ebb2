import { assert, describe, it } from "@effect/vitest"
import { isSoak } from "../system/seed.ts"
import { MUTANTS } from "./mutants.ts"
import { runSeed } from "./run-seed.ts"

/** A mutant is found within so many seeds. */
const MOST_SEEDS = 50

const TIMEOUT_MS = 600_000

describe.runIf(isSoak)("the simulation finds", () => {
  for (const mutant of MUTANTS) {
    it(
      `that ${mutant.name}`,
      async () => {
        for (let seed = 1; seed <= MOST_SEEDS; seed++) {
          if ((await runSeed(seed, { mutant })).length > 0) return
        }
        assert.fail(`not found within ${MOST_SEEDS} seeds`)
      },
      TIMEOUT_MS,
    )
  }
})
