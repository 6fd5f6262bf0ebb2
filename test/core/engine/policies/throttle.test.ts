import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Permanent } from "../../../../core/index.ts"
import { startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, transfer } from "../faults/support.ts"
import { receiver, waitFor, waitForLetters, waitForWords } from "./support.ts"

const reasonOf = (deliveries: number, ms: number) =>
  `permanent: throttled: policy allows ${deliveries} deliveries per ${ms}ms; replay this dead letter to deliver it`

const start = (feed: ScriptedFeed, sink: ReturnType<typeof receiver>["sink"]) =>
  startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })

describe("a throttle", () => {
  it.effect("lets in its budget a window, and makes the rest dead letters that were never sent", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5].map(transfer))
      const a = receiver("a", { throttle: { maxDeliveries: 3, windowMs: 60_000 } })
      const runtime = yield* start(feed, a.sink)
      const refused = (what: string) => ({ what, attempts: 0, reason: reasonOf(3, 60_000) })
      assert.deepStrictEqual(yield* waitForLetters(runtime, 2), ["+4", "+5"].map(refused))
      yield* waitForWords(a, ["+1", "+2", "+3"])

      yield* TestClock.adjust(59_999)
      feed.append([transfer(6)])
      assert.deepStrictEqual(yield* waitForLetters(runtime, 3), ["+4", "+5", "+6"].map(refused))
      yield* TestClock.adjust(1)
      feed.append([7, 8].map(transfer))
      yield* waitForWords(a, ["+1", "+2", "+3", "+7", "+8"])
      assert.deepStrictEqual(a.attempts, a.words())
    }),
  )

  it.effect("is spent by what is delivered alone", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4].map(transfer))
      const a = receiver("a", {
        throttle: { maxDeliveries: 1, windowMs: 60_000 },
        before: (what) => (what < "+3" ? Effect.fail(new Permanent({ reason: "no" })) : Effect.void),
      })
      const runtime = yield* start(feed, a.sink)
      assert.deepStrictEqual(yield* waitForLetters(runtime, 3), [
        { what: "+1", attempts: 1, reason: "permanent: no" },
        { what: "+2", attempts: 1, reason: "permanent: no" },
        { what: "+4", attempts: 0, reason: reasonOf(1, 60_000) },
      ])
      yield* waitForWords(a, ["+3"])
    }),
  )

  it.effect("counts no retraction, and refuses none; what it refused is retracted like any dead match", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([0].map(transfer), [1, 2, 3].map(transfer))
      const a = receiver("a", { throttle: { maxDeliveries: 3, windowMs: 60_000 } })
      const runtime = yield* start(feed, a.sink)
      yield* waitForLetters(runtime, 1)
      feed.fork(1, "b", [])
      yield* waitForWords(a, ["+0", "+1", "+2", "-1", "-2", "-?"])
    }),
  )

  it.effect("takes a digest as one delivery, and refuses each of its members", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5, 6].map(transfer))
      const a = receiver("a", {
        throttle: { maxDeliveries: 2, windowMs: 60_000 },
        aggregate: { maxBatch: 2, windowMs: 1_000 },
      })
      const runtime = yield* start(feed, a.sink)
      yield* waitForWords(a, ["[1 2]", "[3 4]"])
      assert.deepStrictEqual(
        yield* waitForLetters(runtime, 2),
        ["+5", "+6"].map((what) => ({ what, attempts: 0, reason: reasonOf(2, 60_000) })),
      )
    }),
  )

  it.effect("lets a durable buffer wait for the next window instead", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5].map(transfer))
      const a = receiver("a", { buffer: "DURABLE", throttle: { maxDeliveries: 2, windowMs: 60_000 } })
      yield* start(feed, a.sink)
      yield* waitForWords(a, ["+1", "+2"])
      yield* TestClock.adjust(59_999)
      yield* waitForWords(a, ["+1", "+2"])
      yield* TestClock.adjust(1)
      yield* waitForWords(a, ["+1", "+2", "+3", "+4"])
      yield* TestClock.adjust(60_000)
      yield* waitForWords(a, ["+1", "+2", "+3", "+4", "+5"])
    }),
  )

  it.effect("spends nothing on a retraction that goes through the same worker", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = receiver("a", { buffer: "DURABLE", throttle: { maxDeliveries: 2, windowMs: 60_000 } })
      yield* start(feed, a.sink)
      yield* waitForWords(a, ["+1", "+2"])
      yield* TestClock.adjust(60_000)
      feed.fork(0, "b", [3, 4, 5].map(transfer))
      yield* waitForWords(a, ["+1", "+2", "-1", "-2", "+3", "+4"])
      yield* TestClock.adjust(60_000)
      yield* waitForWords(a, ["+1", "+2", "-1", "-2", "+3", "+4", "+5"])
    }),
  )

  it.effect("counts for each network by itself, and anew after a restart of its pipeline", () =>
    Effect.gen(function* () {
      const feeds = { one: new ScriptedFeed(), two: new ScriptedFeed() }
      feeds.one.append([1, 2].map(transfer))
      feeds.two.append([11, 12].map(transfer))
      const a = receiver("a", { throttle: { maxDeliveries: 1, windowMs: 60_000 } })
      yield* startRuntime({
        plugins: [scriptedSource(feeds.one, "one"), scriptedSource(feeds.two, "two")],
        resources: {
          networks: ["one", "two"].map((id) => ({ id, module: id, config: {} })),
          monitors: ["one", "two"].map((id) => ({ id, network: id, selector: { name: "Transfer" }, sinks: ["a"] })),
          sinks: [a.sink],
        },
      })
      yield* waitFor("both networks told one", () => a.told.length === 2)
      assert.deepStrictEqual(a.words().toSorted(), ["+1", "+11"])
      // Taking something back closes the pipeline, and another one follows.
      feeds.one.fork(0, "b", [3, 4].map(transfer))
      yield* waitFor("what follows is told", () => a.told.length === 5)
      assert.deepStrictEqual(a.words().slice(2), ["-1", "-?", "+3"])
    }),
  )
})
