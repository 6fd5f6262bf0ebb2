import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Logger, Schema, Scope } from "effect"
import { PluginRefused, SinkPlugin } from "../../../../core/index.ts"
import { networkNow, resourcesOf, type Runtime, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, reasonsOfDeath, recorder, transfer, waitForNetwork } from "./support.ts"

const waiting =
  "waits for sink f: its secret is not set; pauseSink lets the network go on, with what the sink is owed kept as dead letters"

/** A database with a network whose sinks are `other` and `f`, which is FAILED from the next start until it is mended. */
const failed = Effect.fnUntraced(function* (buffer: "MEMORY" | "DURABLE") {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  const { sink, values } = recorder("f")
  const other = recorder("other")
  let broken = false
  const plugin = SinkPlugin.make({
    name: "flaky",
    config: Schema.Struct({}),
    make: () =>
      broken
        ? new PluginRefused({ reason: "its secret is not set" })
        : Effect.succeed({ timeoutMs: 1_000, deliver: sink.deliver }),
  })
  const definition = { id: "f", module: "flaky", config: {}, buffer }
  const first = yield* Scope.make()
  const start = startRuntime({
    path,
    plugins: [scriptedSource(feed), plugin],
    resources: {
      networks: [{ id: "test", module: "scripted", config: {} }],
      monitors: [allTransfers(["other", "f"])],
      sinks: [definition, other.sink],
    },
  })
  feed.append([transfer(1)])
  yield* waitForCheckpoint(yield* Scope.provide(start, first), "test", 1)
  yield* Scope.close(first, Exit.void)
  broken = true
  const again = startRuntime({ path, plugins: [scriptedSource(feed), plugin], resources: { sinks: [other.sink] } })
  const mend = (runtime: Runtime) =>
    Effect.suspend(() => {
      broken = false
      return resourcesOf(runtime).putSink(definition)
    })
  return { feed, values, other: other.values, again, mend }
})

/** What is logged about networks that do not wait. */
const linesAbout = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    const line = String(message)
    if (line.includes("does not wait")) lines.push(line)
  })
  return { lines, layer: Logger.layer([logger]) }
}

const sinkNow = (runtime: Runtime) =>
  Effect.map(Effect.orDie(resourcesOf(runtime).sinks), (sinks) => sinks.find(({ id }) => id === "f")!)

describe("a sink that is FAILED", () => {
  it.live("holds its network until it is paused, and again once it is resumed", () =>
    Effect.gen(function* () {
      const { feed, values, other, again, mend } = yield* failed("MEMORY")
      const runtime = yield* again
      const { pauseSink, resumeSink } = resourcesOf(runtime)
      yield* waitForNetwork(runtime, "it waits", ({ error }) => error === waiting)
      feed.append([transfer(2)])
      yield* pauseSink("f")
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual(other, [1, 2])
      assert.deepStrictEqual(yield* reasonsOfDeath(runtime), ["permanent: sink paused: by an operator"])
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
      const shown = yield* sinkNow(runtime)
      assert.strictEqual(shown.state, "FAILED")
      assert.strictEqual(shown.error, "its secret is not set (and paused: by an operator; resumeSink lets it go on)")
      yield* resumeSink("f")
      yield* waitForNetwork(runtime, "it waits again", ({ error }) => error === waiting)
      feed.append([transfer(3)])
      yield* mend(runtime)
      yield* waitForCheckpoint(runtime, "test", 3)
      assert.deepStrictEqual(values, [1, 3])
      assert.deepStrictEqual(other, [1, 2, 3])
    }),
  )

  it.live("holds no network with a durable buffer: what it is owed rests until it can be built", () =>
    Effect.gen(function* () {
      const { feed, values, other, again, mend } = yield* failed("DURABLE")
      const { lines, layer } = linesAbout()
      const runtime = yield* Effect.provide(again, layer)
      feed.append([transfer(2)], [transfer(3)])
      yield* waitForCheckpoint(runtime, "test", 3)
      feed.fork(2, "b", [transfer(4)])
      yield* waitUntil("the other branch is read", () => other.includes(4))
      yield* waitForCheckpoint(runtime, "test", 3)
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
      assert.deepInclude(yield* sinkNow(runtime), { state: "FAILED", error: "its secret is not set" })
      assert.deepStrictEqual(yield* reasonsOfDeath(runtime), [])
      assert.deepStrictEqual(values, [1])
      yield* mend(runtime)
      // 3 was never sent.
      yield* waitUntil("all is sent", () => values.length === 3)
      assert.deepStrictEqual(values, [1, 2, 4])
      assert.deepStrictEqual(lines, [
        "the network does not wait: sink f is FAILED (its secret is not set): what it is owed waits in its durable buffer",
      ])
    }),
  )
})
