import { assert, describe, it } from "@effect/vitest"
import { isSoak } from "../system/seed.ts"
import { MUTANTS } from "./mutants.ts"
import { hasProviders } from "./providers.ts"
import { runSeed } from "./run-seed.ts"

/** A mutant is found within so many seeds; most show themselves in the first. */
const MOST_SEEDS = 50

const TIMEOUT_MS = 300_000

describe("the simulation finds", () => {
  for (const mutant of MUTANTS.filter(({ isSlow }) => isSoak || isSlow !== true)) {
    it(
      `that ${mutant.name}`,
      async () => {
        for (let seed = 1; seed <= MOST_SEEDS; seed++) {
          if (hasProviders(seed) !== (mutant.needsProviders === true)) continue
          const violations = await runSeed(seed, { mutant })
          if (violations.some((violation) => mutant.shows.test(violation))) return
        }
        assert.fail(`not found within ${MOST_SEEDS} seeds`)
      },
      TIMEOUT_MS,
    )
  }
})
