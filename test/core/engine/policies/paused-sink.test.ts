import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Permanent } from "../../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { definitions, Gate, transfer } from "../faults/support.ts"
import { receiver, waitFor, waitForLetters, waitForWords } from "./support.ts"

const byOperator = "permanent: sink paused: by an operator"

describe("a paused sink", () => {
  it.live("lets what it is owed die at once, also what is under way, and goes on when it is resumed", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3].map(transfer))
      const delivering = new Gate("closed")
      const a = receiver("a", { before: () => delivering.pass })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const { pauseSink, resumeSink } = resourcesOf(runtime)
      yield* delivering.reached
      yield* pauseSink("a")
      yield* waitForCheckpoint(runtime, "test", 1)
      feed.append([transfer(4)])
      assert.deepStrictEqual(
        yield* waitForLetters(runtime, 4),
        ["+1", "+2", "+3", "+4"].map((what) => ({ what, attempts: 0, reason: byOperator })),
      )
      assert.deepStrictEqual(a.attempts, ["+1"])
      yield* delivering.open
      yield* resumeSink("a")
      feed.append([transfer(5)])
      yield* waitForWords(a, ["+5"])
    }),
  )

  it.live("lets its open batch die", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: 100 } })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("it is read", () => feed.emitted === 1)
      yield* resourcesOf(runtime).pauseSink("a")
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.strictEqual((yield* waitForLetters(runtime, 2)).length, 2)
      assert.deepStrictEqual(a.attempts, [])
    }),
  )

  it.live("holds up no invalidation: its retractions die, also one that hangs", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const retracting = new Gate("closed")
      const a = receiver("a", { before: (what) => (what.startsWith("-") ? retracting.pass : Effect.void) })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForCheckpoint(runtime, "test", 1)
      feed.fork(0, "b", [transfer(3)])
      yield* retracting.reached
      assert.strictEqual((yield* networkNow(runtime, "test")).state, "INVALIDATING")
      yield* resourcesOf(runtime).pauseSink("a")
      yield* waitForCheckpoint(runtime, "test", 1)
      const letters = yield* waitForLetters(runtime, 3)
      assert.deepStrictEqual(
        letters.map(({ what, reason }) => [what[0], reason]),
        [
          ["-", byOperator],
          ["-", byOperator],
          ["+", byOperator],
        ],
      )
      assert.deepStrictEqual(a.words(), ["+1", "+2"])
    }),
  )

  it.live("lets what a durable buffer holds rest, and nothing waits for it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = receiver("a", { buffer: "DURABLE" })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const { pauseSink, resumeSink } = resourcesOf(runtime)
      yield* waitForWords(a, ["+1", "+2"])
      yield* pauseSink("a")
      feed.append([3, 4].map(transfer))
      yield* waitForCheckpoint(runtime, "test", 2)
      feed.fork(1, "b", [5, 6].map(transfer))
      yield* waitForCheckpoint(runtime, "test", 2)
      yield* waitFor("the other branch is read", () => feed.emitted === 3)
      assert.deepStrictEqual(a.words(), ["+1", "+2"])
      yield* resumeSink("a")
      // 3 and 4 were never sent.
      yield* waitForWords(a, ["+1", "+2", "+5", "+6"])
      assert.deepStrictEqual(yield* waitForLetters(runtime, 0), [])
    }),
  )

  for (const buffer of ["MEMORY", "DURABLE"] as const) {
    it.live(`is one whose receiver says that it is gone: nothing more is sent (${buffer})`, () =>
      Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([1, 2, 3].map(transfer))
        let gone = true
        const a = receiver("a", {
          buffer,
          before: () => (gone ? Effect.fail(new Permanent({ reason: "410 Gone", gone: true })) : Effect.void),
        })
        const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
        yield* waitForCheckpoint(runtime, "test", 1)
        const first = { what: "+1", attempts: 1, reason: "permanent: 410 Gone" }
        const rest = ["+2", "+3"].map((what) => ({ what, attempts: 0, reason: "permanent: sink paused: 410 Gone" }))
        yield* waitUntil(
          "the sink is paused",
          Effect.map(Effect.orDie(resourcesOf(runtime).sinks), ([sink]) => sink!.state === "PAUSED"),
        )
        const expected = buffer === "MEMORY" ? [first, ...rest] : []
        assert.deepStrictEqual(yield* waitForLetters(runtime, expected.length), expected)
        assert.deepStrictEqual(a.attempts, ["+1"])
        const [sink] = yield* resourcesOf(runtime).sinks
        assert.deepInclude(sink!, { state: "PAUSED", error: "410 Gone; resumeSink lets it go on" })
        gone = false
        yield* resourcesOf(runtime).resumeSink("a")
        feed.append([transfer(4)])
        yield* waitForWords(a, buffer === "MEMORY" ? ["+4"] : ["+1", "+2", "+3", "+4"])
      }),
    )
  }
})
