import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { DeadLetters, type HostSink, Permanent, Transient } from "../../../../core/index.ts"
import { deliveryId, digestBody, digestId } from "../../../../core/model/sink-event.ts"
import { networkNow, resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, fast, Gate, transfer } from "../faults/support.ts"
import { lettersIn } from "../replays/support.ts"
import { lettersOf } from "../taking-back/support.ts"
import { receiver, waitFor, waitForInFlight, waitForLetters, waitForWords } from "./support.ts"

const start = (feed: ScriptedFeed, sink: HostSink) =>
  startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })

describe("a sink that aggregates", () => {
  it.effect("gets a digest one window after the first match joined, however many follow", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const a = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 100 } })
      const runtime = yield* start(feed, a.sink)
      for (const value of [1, 2, 3]) {
        feed.append([transfer(value)])
        yield* waitForInFlight(runtime, value)
        yield* TestClock.adjust(9_999)
      }
      assert.deepStrictEqual(a.words(), [])
      yield* TestClock.adjust(3)
      yield* waitForWords(a, ["[1 2 3]"])
      // The checkpoint was behind all of them until then.
      yield* waitForInFlight(runtime, 0)
      feed.append([transfer(4)])
      yield* waitForInFlight(runtime, 1)
      yield* TestClock.adjust(29_999)
      assert.strictEqual(a.told.length, 1)
      yield* TestClock.adjust(1)
      yield* waitForWords(a, ["[1 2 3]", "+4"])
    }),
  )

  it.effect("gets it at once when the batch is full; a match alone is a plain match, as without aggregation", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5].map(transfer))
      const a = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 2 } })
      const b = receiver("b")
      yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          ...definitions([a.sink, b.sink]),
          monitors: [{ ...definitions([a.sink]).monitors[0]!, sinks: ["a", "b"] }],
        },
      })
      yield* waitForWords(a, ["[1 2]", "[3 4]"])
      yield* TestClock.adjust(30_000)
      yield* waitForWords(a, ["[1 2]", "[3 4]", "+5"])
      yield* waitForWords(b, ["+1", "+2", "+3", "+4", "+5"])
      assert.deepStrictEqual(a.told[2], b.told[4])
      const payloads = b.told.map(({ body }) => body.replace('"type":"match",', ""))
      const ids = b.told.map(({ body }) => (JSON.parse(body) as { readonly id: string }).id)
      assert.strictEqual(a.told[0]!.body, digestBody(payloads.slice(0, 2)))
      assert.strictEqual(a.told[0]!.id, digestId(ids.slice(0, 2).map((matchId) => ({ matchId, life: 1 }))))
      assert.strictEqual(a.told[2]!.id, deliveryId(ids[4]!, 1, "match"))
    }),
  )

  it.effect("gets each retraction by itself, and what follows in another digest", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1].map(transfer), [2, 3].map(transfer))
      // A durable buffer's retractions go through the same worker.
      const a = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 3 }, buffer: "DURABLE" })
      yield* start(feed, a.sink)
      yield* waitForWords(a, ["[1 2 3]"])
      feed.fork(1, "b", [5, 6].map(transfer))
      yield* waitForWords(a, ["[1 2 3]", "-2", "-3"])
      yield* waitFor("the other branch is read", () => feed.emitted === 2)
      yield* TestClock.adjust(30_000)
      yield* waitForWords(a, ["[1 2 3]", "-2", "-3", "[5 6]"])
    }),
  )

  it.effect("loses from its open batch what is taken back, and gets the rest before the retractions", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 100 } })
      const runtime = yield* start(feed, a.sink)
      yield* waitForInFlight(runtime, 1)
      feed.append([2, 3].map(transfer))
      yield* waitForInFlight(runtime, 3)
      feed.fork(1, "b", [5, 6].map(transfer))
      yield* waitForWords(a, ["+1"])
      yield* waitForInFlight(runtime, 2)
      yield* TestClock.adjust(30_000)
      yield* waitForWords(a, ["+1", "[5 6]"])
    }),
  )

  it.live("gets what its open batch holds before a retraction that is offered again", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      let refuses = true
      const a = receiver("a", {
        aggregate: { windowMs: 86_400_000, maxBatch: 2 },
        before: (what) =>
          refuses && what.startsWith("-") ? Effect.fail(new Permanent({ reason: "no" })) : Effect.void,
      })
      const runtime = yield* start(feed, a.sink)
      yield* waitForWords(a, ["[1 2]"])
      feed.fork(1, "b", [transfer(3)])
      yield* waitForLetters(runtime, 1)
      yield* waitForInFlight(runtime, 1)
      assert.deepStrictEqual(a.words(), ["[1 2]"])
      refuses = false
      assert.strictEqual(yield* Context.get(runtime, DeadLetters).offerRetractions("test", "a"), 1)
      yield* waitForWords(a, ["[1 2]", "+3", "-2"])
    }),
  )

  it.effect("gets what its open batch holds when the network stops, and nothing when it is paused", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 100 } })
      const scope = yield* Scope.make()
      const runtime = yield* start(feed, a.sink).pipe(Scope.provide(scope))
      yield* waitForInFlight(runtime, 2)
      const { pauseNetwork, resumeNetwork } = resourcesOf(runtime)
      yield* pauseNetwork("test")
      yield* waitFor(
        "it rests",
        Effect.map(networkNow(runtime, "test"), ({ state }) => state === "PAUSED"),
      )
      assert.deepStrictEqual(a.words(), [])
      yield* resumeNetwork("test")
      yield* waitForInFlight(runtime, 2)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(a.words(), ["[1 2]"])
    }),
  )

  it.effect("gets it at once when it is put without aggregation", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: 100 } })
      const runtime = yield* start(feed, a.sink)
      yield* waitForInFlight(runtime, 2)
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {} })
      feed.append([transfer(3)])
      yield* waitForWords(a, ["[1 2]", "+3"])
    }),
  )

  it.live("gets a digest whose outcome nobody knows again after a restart: the same members, bytes and id, once", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5].map(transfer))
      const reached = yield* Deferred.make<void>()
      let cut: { readonly id: string; readonly body: string } | undefined
      const hanging = receiver("a", {
        aggregate: { windowMs: 86_400_000, maxBatch: 3 },
        before: (_, { id, body }) => {
          cut = { id, body }
          return Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
        },
      })
      const options = { path, plugins: [scriptedSource(feed)], settings: { drainTimeoutMs: 20 } }
      const scope = yield* Scope.make()
      yield* startRuntime({ ...options, resources: definitions([hanging.sink]) }).pipe(Scope.provide(scope))
      yield* Deferred.await(reached)
      yield* Scope.close(scope, Exit.void)

      const a = receiver("a", { aggregate: { windowMs: 50, maxBatch: 100 } })
      yield* startRuntime({ ...options, resources: definitions([a.sink]) })
      yield* waitForWords(a, ["[1 2 3]", "[4 5]"])
      assert.deepInclude(a.told[0]!, cut!)
    }),
  )

  it.live(
    "that does not take a digest gets each member as a dead letter, in their order, which is replayed alone",
    () =>
      Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([1, 2, 3].map(transfer))
        const a = receiver("a", {
          retry: fast,
          aggregate: { windowMs: 86_400_000, maxBatch: 3 },
          before: () => Effect.fail(new Transient({ reason: "down" })),
        })
        const runtime = yield* start(feed, a.sink)
        assert.deepStrictEqual(
          yield* waitForLetters(runtime, 3),
          ["+1", "+2", "+3"].map((what) => ({ what, attempts: 3, reason: "transient: down" })),
        )
        assert.deepStrictEqual(a.attempts, ["[1 2 3]", "[1 2 3]", "[1 2 3]"])
        yield* lettersIn(runtime).replay((yield* lettersOf(runtime))[1]!.id)
        assert.strictEqual(a.attempts.at(-1), "+2")
      }),
  )

  it.live("gets what it is owed of a digest in the middle of whose delivery it was put anew, once", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const delivering = new Gate("closed")
      const a = receiver("a", { aggregate: { windowMs: 86_400_000, maxBatch: 2 }, before: () => delivering.pass })
      const runtime = yield* start(feed, a.sink)
      yield* delivering.reached
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, concurrency: 3 })
      yield* waitFor("it is attempted again", () => a.attempts.length === 2)
      yield* delivering.open
      yield* waitForInFlight(runtime, 0)
      assert.deepStrictEqual(a.words(), ["[1 2]"])
    }),
  )
})
