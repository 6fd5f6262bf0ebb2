import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { networkNow, resourcesOf, startRuntime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, Gate, transfer, waitForNetwork } from "./faults/support.ts"
import { isRetraction, listener, waitForEnd, waitForState } from "./taking-back/support.ts"

describe("a paused network", () => {
  it.live("reads and sends nothing, and goes on with what it owes when it is resumed", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const total = 200
      feed.append(Array.from({ length: total }, (_, i) => transfer(i)))
      const delivering = new Gate("closed")
      const a = listener("a", { before: () => delivering.pass })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const resources = resourcesOf(runtime)
      yield* delivering.reached
      const before = yield* waitUntil("the block was read", () => feed.emitted === 1).pipe(
        Effect.andThen(resources.pauseNetwork("test")),
      )
      assert.include(["DRAINING", "PAUSED"], before.state)
      yield* waitForState(runtime, "DRAINING")
      yield* delivering.open
      yield* waitForState(runtime, "PAUSED")
      feed.append([transfer(total)])
      // The attempt that had begun is finished; a change of a sink wakes nothing.
      yield* resources.putSink({ id: "a", module: "host:a", config: {} })
      yield* resources.putMonitor(allTransfers(["a"], { enabled: true }))
      assert.deepStrictEqual(a.words(), ["+0"])
      assert.strictEqual(feed.emitted, 1)
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "PAUSED", error: null, inFlightEvents: 0 })
      const resumed = yield* resources.resumeNetwork("test")
      assert.notStrictEqual(resumed.state, "PAUSED")
      yield* waitForEnd(runtime, 2)
      assert.deepStrictEqual(
        a.words(),
        Array.from({ length: total + 1 }, (_, i) => `+${i}`),
      )
    }),
  )

  it.live("is paused also after a restart, and can be paused and resumed again and again", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = listener("a")
      const options = { path, plugins: [scriptedSource(feed)], resources: definitions([a.sink]) }
      const scope = yield* Scope.make()
      const first = yield* startRuntime(options).pipe(Scope.provide(scope))
      yield* waitForEnd(first, 1)
      yield* resourcesOf(first).pauseNetwork("test")
      yield* waitForState(first, "PAUSED")
      yield* Scope.close(scope, Exit.void)
      feed.append([transfer(2)])
      const runtime = yield* startRuntime(options)
      yield* waitForState(runtime, "PAUSED")
      assert.deepInclude((yield* networkNow(runtime, "test")).checkpoint?.cursor, { primary: 1 })
      for (let n = 2; n <= 4; n++) {
        assert.strictEqual(a.words().length, n - 1)
        yield* resourcesOf(runtime).resumeNetwork("test")
        yield* waitForEnd(runtime, n)
        yield* resourcesOf(runtime).pauseNetwork("test")
        yield* waitForState(runtime, "PAUSED")
        feed.append([transfer(n + 1)])
      }
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3", "+4"])
    }),
  )

  it.live("that was FAILED is tried again by a resume, paused or not", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      feed.refusal = "the wrong chain"
      const a = listener("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const resources = resourcesOf(runtime)
      yield* waitForState(runtime, "FAILED")
      assert.strictEqual((yield* networkNow(runtime, "test")).error, "the wrong chain")
      yield* resources.pauseNetwork("test")
      yield* waitForNetwork(runtime, "it rests", ({ state, error }) => state === "PAUSED" && error === null)
      yield* resources.resumeNetwork("test")
      yield* waitForState(runtime, "FAILED")
      feed.refusal = null
      yield* resources.resumeNetwork("test")
      yield* waitForEnd(runtime, 1)
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
    }),
  )

  it.live("finds a fork of the time of its rest when it is resumed", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const a = listener("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 2)
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      feed.fork(1, "x", [transfer(20)], [transfer(30)])
      assert.deepStrictEqual(a.words(), ["+1", "+2"])
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(a.words(), ["+1", "+2", "-2", "+20", "+30"])
    }),
  )

  it.live("that was taking something back finishes that, and then rests", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      const sending = new Gate("closed")
      const a = listener("a", { before: (event) => (isRetraction(event) ? sending.pass : Effect.void) })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 3)
      feed.fork(1, "x", [transfer(20)], [transfer(30)])
      yield* sending.reached
      const paused = yield* resourcesOf(runtime).pauseNetwork("test")
      assert.strictEqual(paused.state, "INVALIDATING")
      yield* sending.open
      yield* waitForState(runtime, "PAUSED")
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3", "-2", "-3"])
      assert.strictEqual((yield* networkNow(runtime, "test")).checkpoint?.cursor.primary, 1)
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(a.standing(), ["1", "20", "30"])
    }),
  )

  it.live("matches what comes after its rest with its monitors as they were edited meanwhile", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const a = listener("a")
      const b = listener("b")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink, b.sink]) })
      const resources = resourcesOf(runtime)
      yield* waitForEnd(runtime, 1)
      yield* resources.pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      const edited = yield* resources.putMonitor(allTransfers(["b"], { selector: { name: "Burn" } }))
      assert.isNull(edited.effectiveFrom)
      feed.append([transfer(2), { name: "Burn", value: 20n }])
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "PAUSED" })
      yield* resources.resumeNetwork("test")
      yield* waitForEnd(runtime, 2)
      assert.deepStrictEqual([a.words(), b.words()], [["+1"], ["+20"]])
      const [monitor] = yield* resources.monitors
      assert.strictEqual(monitor!.effectiveFrom?.primary, 1)
    }),
  )
})
