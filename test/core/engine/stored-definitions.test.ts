import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { layerSqlite, Storage } from "../../../core/index.ts"
import { defaultRetry } from "../../../core/model/policy.ts"
import type { SinkDefinition } from "../../../core/model/resource.ts"
import { networkNow, startRuntime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { databaseFile, definitions, recorder } from "./faults/support.ts"

const sink: SinkDefinition = {
  id: "a",
  module: "host:a",
  config: { secret: "hunter2" },
  retry: defaultRetry,
  throttle: null,
  aggregate: null,
  concurrency: 1,
  buffer: "MEMORY",
}

/** Writes rows as no program of this version does. */
const tamper = (
  path: string,
  rows: { readonly sinks?: ReadonlyArray<object>; readonly monitors?: ReadonlyArray<object> },
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { change } = Context.get(yield* Layer.build(layerSqlite({ path })), Storage)
      yield* change({
        putSinks: (rows.sinks ?? []).map((row) => ({ definition: { ...sink, ...row }, revision: "r" })),
        putMonitors: (rows.monitors ?? []).map((row) => ({
          definition: {
            ...definitions([recorder("a").sink]).monitors[0]!,
            predicate: null,
            gate: null,
            enabled: true,
            ...row,
          },
          revision: "r",
          matchRevision: "m",
          effectiveFrom: null,
        })),
      })
    }),
  )

/** A database that a runtime has filled. */
const filled = Effect.gen(function* () {
  const path = yield* databaseFile
  const options = { path, plugins: [scriptedSource(new ScriptedFeed())], resources: definitions([recorder("a").sink]) }
  const scope = yield* Scope.make()
  yield* startRuntime(options).pipe(Scope.provide(scope))
  yield* Scope.close(scope, Exit.void)
  return { path, plugins: options.plugins }
})

describe("definitions in the database", () => {
  it.live("that do not validate stop the start, all problems at once, each with its resource and field", () =>
    Effect.gen(function* () {
      const { path, plugins } = yield* filled
      yield* tamper(path, {
        sinks: [
          { id: "b", throttle: { maxDeliveries: 0, windowMs: 60_000 }, concurrency: 101 },
          { id: "c", aggregate: { windowMs: 86_400_001, maxBatch: 1 }, buffer: "DISK" },
          { id: "d", retry: { maxAttempts: 1, initialBackoffMs: 2, maxBackoffMs: 1 } },
          { id: "e", unheardOf: 1 },
        ],
        monitors: [
          { id: "x", gate: { type: "max_once", windowMs: 0, by: null } },
          { id: "y", gate: { type: "threshold", windowMs: 1, by: null } },
        ],
      })
      const refused = yield* Effect.flip(startRuntime({ path, plugins }))
      assert.strictEqual(refused._tag, "StorageError")
      const [introduction, ...problems] = refused.message.split("\n  ")
      assert.match(introduction!, /definitions in the database do not validate, correct or delete their rows/)
      assert.deepStrictEqual(
        problems.map((problem) => problem.split(":", 1)[0]),
        [
          'monitor "x".gate.windowMs',
          'monitor "y".gate.count',
          'sink "b".throttle.maxDeliveries',
          'sink "b".concurrency',
          'sink "c".aggregate.windowMs',
          'sink "c".buffer',
          'sink "d".retry.initialBackoffMs',
          'sink "e".unheardOf',
        ],
      )
      assert.notInclude(refused.message, "hunter2")
    }),
  )

  it.live("that only a plugin can judge make the network FAILED: a gate's key over fields that are not there", () =>
    Effect.gen(function* () {
      const { path, plugins } = yield* filled
      yield* tamper(path, {
        monitors: [{ id: "x", gate: { type: "max_once", windowMs: 1, by: "args.nope" } }],
      })
      const runtime = yield* startRuntime({ path, plugins })
      yield* waitUntil(
        "it is FAILED",
        Effect.map(networkNow(runtime, "test"), ({ state }) => state === "FAILED"),
      )
      assert.match(
        (yield* networkNow(runtime, "test")).error!,
        /^monitor x: gate.by: line 1, column 6: args has no field nope/,
      )
    }),
  )
})
