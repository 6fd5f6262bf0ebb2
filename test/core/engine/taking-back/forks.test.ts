import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { networkNow, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, transfer } from "../faults/support.ts"
import { listener } from "./support.ts"

describe("a fork that cuts into what was delivered", () => {
  it.live("is told to each sink: all retractions, then all replacements; what lies before it stays", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      const a = listener("a")
      const b = listener("b")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink, b.sink]), monitors: [allTransfers(["a", "b"])] },
      })
      yield* waitForCheckpoint(runtime, "test", 3)
      feed.fork(1, "x", [transfer(20)], [transfer(30)], [transfer(40)])
      yield* waitForCheckpoint(runtime, "test", 4)
      for (const { words } of [a, b]) {
        assert.deepStrictEqual(words(), ["+1", "+2", "+3", "-2", "-3", "+20", "+30", "+40"])
      }
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
    }),
  )

  it.live("that flips back gives the same ids in their next life, and other ids of the deliveries", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const { told, words, standing, sink } = listener("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      yield* waitForCheckpoint(runtime, "test", 2)
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForCheckpoint(runtime, "test", 3)
      feed.fork(1, "", [transfer(2)], [], [])
      yield* waitForCheckpoint(runtime, "test", 4)
      yield* waitUntil("the flip back is told", () => words().length === 6)
      assert.deepStrictEqual(words(), ["+1", "+2", "-2", "+20", "-20", "+2"])
      const id = told[1]!.id
      assert.deepStrictEqual([told[2]!.id, told[5]!.id], [`${id}-r`, `${id}-2`])
      assert.deepStrictEqual(standing(), ["1", "2"])
    }),
  )
})
