import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { NotOwner } from "../../../../core/storage/error.ts"
import { definitions, startOver, transfer } from "./support.ts"
import { receiver } from "../policies/support.ts"

describe("an owner that is overtaken while it writes the outcomes of a digest", () => {
  for (const size of [100, 2_000]) {
    it.live(
      `of ${size} matches goes on, or stands by`,
      () =>
        Effect.gen(function* () {
          const feed = new ScriptedFeed()
          feed.append(Array.from({ length: size }, (_, i) => transfer(i)))
          const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: size } })
          let overtaken = false
          const { runtime } = yield* startOver(
            ({ settle }) => ({
              settle: (owner, input) => {
                if (overtaken || input.outcomes.length === 0) return settle(owner, input)
                overtaken = true
                return Effect.fail(new NotOwner({ network: owner.network }))
              },
            }),
            { plugins: [scriptedSource(feed)], resources: definitions([a.sink]), settings: { drainTimeoutMs: 100 } },
          )
          yield* waitForCheckpoint(runtime, "test", 1)
        }),
      20_000,
    )
  }
})

describe("the outcomes of a digest", () => {
  it.live("are written together, so that no restart finds a part of it", () =>
    Effect.gen(function* () {
      const size = 700
      const feed = new ScriptedFeed()
      feed.append(Array.from({ length: size }, (_, i) => transfer(i)))
      const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: size } })
      const written: Array<number> = []
      const { runtime } = yield* startOver(
        ({ settle }) => ({
          settle: (owner, input) => {
            if (input.outcomes.length > 0) written.push(input.outcomes.length)
            return settle(owner, input)
          },
        }),
        { plugins: [scriptedSource(feed)], resources: definitions([a.sink]) },
      )
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(written, [size])
    }),
  )
})
