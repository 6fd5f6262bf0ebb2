import { assert, it } from "@effect/vitest"
import { Effect, Latch } from "effect"
import { describe } from "vitest"
import type { Schema } from "effect"
import { endOf, startOf } from "../../../core/model/cursor.ts"
import { SourcePlugin, type SourceBatch, type SourceRecord, type SourceRun } from "../../../core/plugin/source.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { temporaryFolder } from "../../support/process.ts"

/** The scripted source, whose runs a test changes. */
const changing = (feed: ScriptedFeed, change: (run: SourceRun<any>) => SourceRun<any>) => {
  const plugin = scriptedSource(feed)
  return {
    ...plugin,
    config: plugin.config as Schema.Codec<any, any>,
    make: (config: any) =>
      Effect.map(plugin.make(config), (source) => ({ ...source, run: (run) => source.run(change(run)) })),
  } satisfies SourcePlugin
}

const record = (value: string, primary: number): SourceRecord => ({ key: "k", value, cursor: endOf(primary) })

const resources = {
  networks: [{ id: "test", module: "scripted", config: { start: 3, range: 4 } }],
  sinks: [{ id: "mine", deliver: () => Effect.void }],
  monitors: [{ id: "m", network: "test", selector: { name: "Transfer" }, sinks: ["mine"] }],
}

describe("what a source records", () => {
  it.live("is given back after a restart, and is gone with what was taken back or forgotten", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 12 }, (_, i) => [{ name: i % 2 === 0 ? "Transfer" : "Other", value: 1n }]))
      const path = `${yield* temporaryFolder}/rows.db`
      const given: Array<SourceRun<unknown>["resume"]> = []
      const change = (batch: SourceBatch): SourceBatch => {
        const { primary } = batch.upTo
        return {
          ...batch,
          records: [record("first", 2), record(`at ${primary}`, primary)],
          forget: primary === 10 ? [record("at 6", 6)] : [],
        }
      }
      const plugin = changing(feed, (run) => {
        given.push(run.resume)
        return { ...run, emit: (batch) => run.emit(change(batch)) }
      })
      const start = startRuntime({ path, plugins: [plugin], resources })
      yield* Effect.scoped(Effect.flatMap(start, (runtime) => waitForCheckpoint(runtime, "test", 12)))
      assert.deepStrictEqual(given, [{ cursor: startOf(3), anchors: [], records: [], depth: 1024, start: startOf(3) }])

      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* start
          yield* waitUntil("the source runs again", () => given.length === 2)
          assert.deepStrictEqual(given[1]!.records, [record("at 10", 10), record("at 12", 12), record("first", 2)])
          assert.deepStrictEqual(given[1]!.start, startOf(3))
          yield* resourcesOf(runtime).rewindNetwork("test", endOf(11))
          yield* waitUntil("the source runs a third time", () => given.length === 3)
          assert.deepStrictEqual(given[2]!.records, [record("at 10", 10), record("first", 2)])
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.live("that cannot be kept is a fault of the source, which is told", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([{ name: "Transfer", value: 1n }], [], [])
      const plugin = changing(feed, (run) => ({
        ...run,
        emit: (batch) => run.emit({ ...batch, records: [record("ahead", batch.upTo.primary + 1)] }),
      }))
      const runtime = yield* startRuntime({ plugins: [plugin], resources })
      yield* waitUntil(
        "the fault is shown",
        Effect.map(networkNow(runtime, "test"), ({ error }) => error?.includes("recorded something at 4") === true),
      )
    }).pipe(Effect.scoped),
  )
})

describe("an interest that its source is not ready for", () => {
  it.live("takes effect with the first batch that was fetched for it, and says till then what it waits for", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 12 }, () => [{ name: "Transfer", value: 1n }]))
      const ready = yield* Latch.make(false)
      const pending = new Map([["m", "the children"]])
      const plugin = changing(feed, (run) => ({
        ...run,
        emit: (batch) =>
          batch.upTo.primary <= 10
            ? run.emit({ ...batch, events: [], pending })
            : Effect.andThen(ready.await, run.emit(batch)),
      }))
      const runtime = yield* startRuntime({ plugins: [plugin], resources })
      yield* waitForCheckpoint(runtime, "test", 10)
      const [before] = yield* resourcesOf(runtime).monitors
      assert.deepInclude(before, { effectiveFrom: null, error: "the children" })
      assert.strictEqual((yield* networkNow(runtime, "test")).error, null)
      yield* ready.open
      yield* waitForCheckpoint(runtime, "test", 12)
      const [after] = yield* resourcesOf(runtime).monitors
      assert.deepInclude(after, { effectiveFrom: endOf(10), error: null })
    }).pipe(Effect.scoped),
  )
})
