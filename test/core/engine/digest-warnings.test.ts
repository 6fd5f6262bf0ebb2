import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Schema } from "effect"
import { SinkPlugin } from "../../../core/index.ts"
import { resourcesOf, startRuntime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../support/scripted-source.ts"
import { allTransfers, databaseFile } from "./faults/support.ts"

const plugin = SinkPlugin.make({
  name: "plain",
  config: Schema.Struct({}),
  make: () =>
    Effect.succeed({ timeoutMs: 1_000, deliver: () => Effect.void, noDigests: "template knows no digests; mend it" }),
})

describe("a sink that cannot send digests as they should be", () => {
  it.live("is warned of when it is to get any, as it is written and at each start, and not before", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const layer = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const warnings = () => lines.splice(0).filter((line) => line.includes("digests"))
      const path = yield* databaseFile
      const start = (resources = {}) =>
        startRuntime({ path, plugins: [scriptedSource(new ScriptedFeed()), plugin], resources })
      const gate = { type: "threshold", count: 2, windowMs: 1_000 }
      const first = Effect.gen(function* () {
        const runtime = yield* start({
          networks: [{ id: "test", module: "scripted", config: {} }],
          sinks: [{ id: "s", module: "plain", config: {} }],
          monitors: [
            allTransfers(["s"]),
            allTransfers(["s"], { id: "once", gate: { type: "max_once", windowMs: 1_000 } }),
          ],
        })
        assert.deepStrictEqual(warnings(), [])
        yield* resourcesOf(runtime).putMonitor(allTransfers(["s"], { gate }))
        assert.deepStrictEqual(warnings(), [
          "sink s is to get digests (monitor all has a gate), but its template knows no digests; mend it",
        ])
        yield* resourcesOf(runtime).putSink({ id: "s", module: "plain", config: {}, aggregate: {} })
        assert.lengthOf(warnings(), 1)
      })
      yield* Effect.provide(Effect.scoped(first), layer)
      yield* Effect.provide(Effect.scoped(start()), layer)
      assert.deepStrictEqual(warnings(), [
        "sink s is to get digests (it aggregates, monitor all has a gate), but its template knows no digests; mend it",
      ])
    }),
  )
})
