import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { playMisbehaving } from "./misbehaving.ts"

/** Seeds that found faults once. */
const KEPT = [40, 85]

const FIRST = Number(process.env["BLOCKWATCHER_TEST_SEED"] ?? 101)
const COUNT = Number(process.env["BLOCKWATCHER_TEST_SEEDS"] ?? 2)

const seeds = [
  ...(process.env["BLOCKWATCHER_TEST_SEED"] === undefined ? KEPT : []),
  ...Array.from({ length: COUNT }, (_, i) => FIRST + i),
]

describe.concurrent("three providers of which two at most misbehave, each in its own way", () => {
  for (const seed of seeds)
    it.live(
      `hand over what is on the chain, and the run keeps up (BLOCKWATCHER_TEST_SEED=${seed})`,
      () =>
        Effect.gen(function* () {
          const lines: Array<string> = []
          const problems = yield* playMisbehaving(seed, (line) => void lines.push(line))
          assert.deepStrictEqual([...problems], [], lines.join("\n"))
        }),
      120_000,
    )
})
