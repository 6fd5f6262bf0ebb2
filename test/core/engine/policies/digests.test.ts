import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { TooLarge, Transient } from "../../../../core/index.ts"
import { startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, transfer } from "../faults/support.ts"
import { receiver, type Receiver, waitForLetters, waitForWords } from "./support.ts"

const day = 86_400_000

const sizeOf = (what: string) => what.split(" ").length

const start = (feed: ScriptedFeed, a: Receiver) =>
  startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })

describe("a digest that is too large", () => {
  it.live("is split in halves, each with an id of its own, until they fit", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5, 6, 7].map(transfer), [transfer(8)])
      const a = receiver("a", {
        aggregate: { windowMs: day, maxBatch: 8 },
        before: (what) => (sizeOf(what) > 3 ? Effect.fail(new TooLarge({ reason: "3 at most" })) : Effect.void),
      })
      const runtime = yield* start(feed, a)
      yield* waitForWords(a, ["[1 2]", "[3 4]", "[5 6]", "[7 8]"])
      assert.deepStrictEqual(a.attempts, [
        "[1 2 3 4 5 6 7 8]",
        "[1 2 3 4]",
        "[1 2]",
        "[3 4]",
        "[5 6 7 8]",
        "[5 6]",
        "[7 8]",
      ])
      assert.strictEqual(new Set(a.told.map(({ id }) => id)).size, 4)
      yield* waitForCheckpoint(runtime, "test", 2)
    }),
  )

  it.live("leaves the match alone that is too large by itself: a dead letter at once", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3].map(transfer))
      const a = receiver("a", {
        aggregate: { windowMs: day, maxBatch: 3 },
        before: (what) => (what.includes("2") ? Effect.fail(new TooLarge({ reason: "no 2" })) : Effect.void),
      })
      const runtime = yield* start(feed, a)
      yield* waitForWords(a, ["+1", "+3"])
      assert.deepStrictEqual(a.attempts, ["[1 2 3]", "[1 2]", "+1", "+2", "+3"])
      assert.deepStrictEqual(yield* waitForLetters(runtime, 1), [
        { what: "+2", attempts: 3, reason: "permanent: too large: no 2" },
      ])
    }),
  )

  it.live("is sent again in the halves in which it was written, when a restart finds one without an outcome", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4].map(transfer))
      const reached = yield* Deferred.make<void>()
      const aggregate = { windowMs: day, maxBatch: 4 }
      const first = receiver("a", {
        aggregate,
        before: (what) =>
          sizeOf(what) > 2
            ? Effect.fail(new TooLarge({ reason: "2 at most" }))
            : Effect.andThen(Deferred.succeed(reached, undefined), Effect.never),
      })
      const options = { path, plugins: [scriptedSource(feed)], settings: { drainTimeoutMs: 20 } }
      const scope = yield* Scope.make()
      yield* startRuntime({ ...options, resources: definitions([first.sink]) }).pipe(Scope.provide(scope))
      yield* Deferred.await(reached)
      yield* Scope.close(scope, Exit.void)
      const a = receiver("a", { aggregate })
      yield* startRuntime({ ...options, resources: definitions([a.sink]) })
      // The other half was still part of the whole.
      yield* waitForWords(a, ["[1 2]", "[3 4]"])
    }),
  )
})

describe("what a gate emits", () => {
  const gated = (sinks: ReadonlyArray<string>, count: number) =>
    allTransfers(sinks, {
      id: "gated",
      predicate: "args.value >= 100",
      gate: { type: "threshold", count, windowMs: 3_600_000 },
    })

  it.effect("is one digest for every sink, whether it aggregates or not, behind the batch that was open", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 100, 2, 101, 3, 102, 4].map(transfer))
      const aggregating = receiver("a", { aggregate: { windowMs: 30_000, maxBatch: 100 } })
      const plain = receiver("b")
      yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          ...definitions([aggregating.sink, plain.sink]),
          monitors: [allTransfers(["a", "b"], { predicate: "args.value < 100" }), gated(["a", "b"], 3)],
        },
      })
      yield* waitForWords(plain, ["+1", "+2", "+3", "[100 101 102]", "+4"])
      yield* waitForWords(aggregating, ["[1 2 3]", "[100 101 102]"])
      yield* TestClock.adjust(30_000)
      yield* waitForWords(aggregating, ["[1 2 3]", "[100 101 102]", "+4"])
      assert.deepInclude(aggregating.told[1]!, plain.told[3]!)
    }),
  )

  it.effect("is a plain match when it has one member", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([100, 101].map(transfer))
      const a = receiver("a")
      yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink]), monitors: [gated(["a"], 1)] },
      })
      yield* waitForWords(a, ["+100", "+101"])
    }),
  )

  it.live("holds no checkpoint up, and is owed like anything else: also more than fit into one page", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const values = Array.from({ length: 1_000 }, (_, i) => 100 + i)
      feed.append(values.map(transfer))
      let down = true
      const a = receiver("a", {
        buffer: "DURABLE",
        before: () => (down ? Effect.fail(new Transient({ reason: "down" })) : Effect.void),
      })
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink]), monitors: [gated(["a"], 1_000)] },
      })
      yield* waitForCheckpoint(runtime, "test", 1)
      down = false
      yield* waitForWords(a, [`[${values.join(" ")}]`])
    }),
  )
})
