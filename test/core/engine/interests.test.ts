import { assert, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { describe } from "vitest"
import { Blockwatcher, type SinkEvent } from "../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"

const transfer = (value: number) => ({ name: "Transfer", value: BigInt(value) })

const recorder = (id: string) => {
  const seen: Array<{ readonly monitor: string; readonly block: number }> = []
  const deliver = (event: SinkEvent) =>
    Effect.sync(() => {
      if (event.type !== "match") return
      seen.push({ monitor: event.monitor, block: (event.event["block"] as { number: number }).number })
    })
  return { seen, sink: { id, deliver } }
}

const blocksOf = (seen: ReadonlyArray<{ readonly monitor: string; readonly block: number }>, monitor: string) =>
  seen.filter((match) => match.monitor === monitor).map(({ block }) => block)

describe("monitors", () => {
  it.live("put minutes after their network see everything from its start", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 40 }, (_, i) => [transfer(i)]))
      const { seen, sink } = recorder("mine")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { networks: [{ id: "test", module: "scripted", config: { start: 1 } }], sinks: [sink] },
      })
      const before = yield* networkNow(runtime, "test")
      assert.strictEqual(before.state, "STARTING")
      assert.strictEqual(before.error, "waits for an enabled monitor")
      assert.strictEqual(before.checkpoint, null)
      const { networks } = yield* Context.get(runtime, Blockwatcher).health
      assert.deepStrictEqual(networks, [{ id: "test", state: "STARTING", error: null, owes: [] }])
      yield* resourcesOf(runtime).putMonitor({
        id: "m",
        network: "test",
        selector: { name: "Transfer" },
        sinks: ["mine"],
      })
      yield* waitForCheckpoint(runtime, "test", 40)
      assert.deepStrictEqual(
        blocksOf(seen, "m"),
        Array.from({ length: 40 }, (_, i) => i + 1),
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).error, null)
    }),
  )

  it.live("added while the feed is read match all behind their effectiveFrom, and nothing before it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const total = 4_000
      feed.append(...Array.from({ length: total }, (_, i) => [transfer(i)]))
      const { seen, sink } = recorder("mine")
      const monitor = (id: string) => ({ id, network: "test", selector: { name: "Transfer" }, sinks: ["mine"] })
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ id: "test", module: "scripted", config: { start: 1, range: 3 } }],
          sinks: [sink],
          monitors: [monitor("first")],
        },
      })
      yield* waitUntil("matches flow", () => seen.length > 100)
      yield* resourcesOf(runtime).putMonitor(monitor("second"))
      yield* waitForCheckpoint(runtime, "test", total)
      const monitors = yield* resourcesOf(runtime).monitors
      const from = monitors.find(({ id }) => id === "second")!.effectiveFrom!
      assert.isAbove(from.primary, 50)
      assert.isBelow(from.primary, total)
      assert.deepStrictEqual(
        blocksOf(seen, "second"),
        Array.from({ length: total - from.primary }, (_, i) => from.primary + 1 + i),
      )
      assert.strictEqual(blocksOf(seen, "first").length, total)
    }),
  )

  it.live("that are edited match by the new revision from its effectiveFrom on", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const { seen, sink } = recorder("mine")
      const monitor = { id: "m", network: "test", selector: { name: "Transfer" }, sinks: ["mine"] }
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ id: "test", module: "scripted", config: {} }],
          sinks: [sink],
          monitors: [monitor],
        },
      })
      yield* waitForCheckpoint(runtime, "test", 2)
      const { putMonitor, monitors } = resourcesOf(runtime)
      const before = (yield* monitors)[0]!
      assert.deepStrictEqual(before.effectiveFrom?.primary, 0)
      const edited = yield* putMonitor({ ...monitor, predicate: "args.value > 10" })
      assert.strictEqual(edited.effectiveFrom, null)
      assert.notStrictEqual(edited.revision, before.revision)
      feed.append([transfer(3), transfer(30)])
      yield* waitForCheckpoint(runtime, "test", 3)
      assert.deepStrictEqual(blocksOf(seen, "m"), [1, 2, 3])
      assert.strictEqual((yield* monitors)[0]!.effectiveFrom?.primary, 2)
    }),
  )

  it.live("that are deleted or switched off match nothing more, and quiet blocks still move the checkpoint", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const { seen, sink } = recorder("mine")
      const monitor = { id: "m", network: "test", selector: { name: "Transfer" }, sinks: ["mine"] }
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: {
          networks: [{ id: "test", module: "scripted", config: {} }],
          sinks: [sink],
          monitors: [monitor],
        },
      })
      yield* waitForCheckpoint(runtime, "test", 1)
      yield* resourcesOf(runtime).putMonitor({ ...monitor, enabled: false })
      feed.append([transfer(2)], ...Array.from({ length: 10_000 }, () => []))
      yield* waitForCheckpoint(runtime, "test", 10_002)
      yield* resourcesOf(runtime).deleteMonitor("m")
      feed.append([transfer(3)])
      yield* waitForCheckpoint(runtime, "test", 10_003)
      assert.deepStrictEqual(blocksOf(seen, "m"), [1])
      assert.deepStrictEqual(yield* resourcesOf(runtime).monitors, [])
    }),
  )
})
