import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Schema, Scope } from "effect"
import { describe } from "vitest"
import { type HostSink, SinkPlugin, Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import {
  allTransfers,
  databaseFile,
  definitions,
  fast,
  reasonsOfDeath,
  recorder,
  transfer,
  waitForInFlight,
  waitForNetwork,
} from "./support.ts"

describe("a sink", () => {
  it.live("that interrupts itself has failed its attempt, and the checkpoint passes it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([{ id: "mine", retry: fast, deliver: () => Effect.interrupt }]),
      })
      yield* waitForCheckpoint(runtime, "test", 2)
      const reason = "transient: the sink interrupted its own attempt"
      assert.deepStrictEqual(yield* reasonsOfDeath(runtime), [reason, reason])
    }),
  )

  it.live("that cannot be interrupted has failed its attempt when the time of the attempt is over", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const free = yield* Deferred.make<void>()
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([
          {
            id: "mine",
            retry: { ...fast, maxAttempts: 1 },
            timeoutMs: 50,
            deliver: () => Effect.uninterruptible(Deferred.await(free)),
          },
        ]),
      })
      yield* Effect.addFinalizer(() => Deferred.succeed(free, undefined))
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(yield* reasonsOfDeath(runtime), ["transient: no outcome within 50 ms"])
    }),
  )

  it.live("whose plugin breaks while it is built is FAILED, and the runtime starts", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      let broken = false
      const plugin = SinkPlugin.make({
        name: "odd",
        config: Schema.Struct({}),
        make: () =>
          Effect.sync(() => {
            if (broken) throw new Error("a bug in the plugin")
            return { deliver: () => Effect.void, timeoutMs: 100 }
          }),
      })
      const plugins = [scriptedSource(new ScriptedFeed()), plugin]
      const odd = { id: "odd", module: "odd", config: {} }
      yield* Effect.scoped(startRuntime({ path, plugins, resources: { sinks: [odd] } }))
      broken = true
      const runtime = yield* startRuntime({ path, plugins })
      const [sink] = yield* resourcesOf(runtime).sinks
      assert.strictEqual(sink!.state, "FAILED")
      assert.include(sink!.error, "a bug in the plugin")
    }),
  )

  it.live("that is FAILED is named while rows are owed to it, also when no monitor names it, and others go on", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const path = yield* databaseFile
      const gone: HostSink = { id: "gone", deliver: () => Effect.never }
      const { values, sink: other } = recorder("other")
      const options = { path, plugins: [scriptedSource(feed)], settings: { drainTimeoutMs: 50 } }
      const scope = yield* Scope.make()
      const first = yield* startRuntime({ ...options, resources: definitions([gone, other]) }).pipe(
        Scope.provide(scope),
      )
      yield* waitForInFlight(first)
      yield* Scope.close(scope, Exit.void)
      // A runtime without the function: its sink is FAILED.
      const runtime = yield* startRuntime({ ...options, resources: { sinks: [other] } })
      yield* resourcesOf(runtime).putMonitor(allTransfers(["other"]))
      feed.append([transfer(2)])
      yield* waitUntil("the other sink has the second transfer", () => values.includes(2))
      yield* waitForNetwork(
        runtime,
        "the sink is named",
        ({ error }) => error !== null && error.startsWith("waits for sink gone: "),
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).checkpoint?.cursor.primary, 0)
    }),
  )

  it.live("that fails is what a source waits for when it runs again, and the network says so", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const total = 1_300
      feed.append(Array.from({ length: total }, (_, i) => transfer(i)))
      const hour = 3_600_000
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        settings: { drainTimeoutMs: 50 },
        resources: definitions([
          {
            id: "mine",
            retry: { maxAttempts: 8, initialBackoffMs: hour, maxBackoffMs: hour },
            deliver: () => Effect.fail(new Transient({ reason: "down" })),
          },
        ]),
      })
      yield* waitForNetwork(runtime, "the sink's queue is full", ({ inFlightEvents }) => inFlightEvents > 1_024)
      yield* resourcesOf(runtime).putNetwork({ id: "test", module: "scripted", config: { key: "another" } })
      yield* waitForNetwork(
        runtime,
        "the network tells what it waits for",
        ({ error, state }) => state === "STARTING" && error === "waits for sink mine: transient: down",
      )
    }),
  )
})
