import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Scope } from "effect"
import { describe } from "vitest"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Refused, type SeedFile, Seeds } from "../../../core/index.ts"
import { resourcesOf, type Runtime, startRuntime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../support/scripted-source.ts"

const file = (kind: SeedFile["kind"], name: string, content: unknown): SeedFile => ({
  kind,
  path: `${kind}s/${name}.json`,
  text: typeof content === "string" ? content : JSON.stringify(content),
})

const network = file("network", "test", { id: "test", module: "scripted", config: {} })
const sink = file("sink", "out", { id: "out", module: "host:host", config: {}, retry: { max_attempts: 3 } })
const monitor = (predicate: string) =>
  file("monitor", "m", { id: "m", network: "test", selector: { name: "Transfer" }, predicate, sinks: ["out"] })

const start = (path?: string) =>
  startRuntime({
    ...(path === undefined ? {} : { path }),
    plugins: [scriptedSource(new ScriptedFeed())],
    resources: { sinks: [{ id: "host", deliver: () => Effect.void }] },
  })

const apply = (runtime: Runtime, files: ReadonlyArray<SeedFile>) => Context.get(runtime, Seeds).apply(files)

const predicateOf = (runtime: Runtime) =>
  Effect.map(resourcesOf(runtime).monitors, (monitors) => monitors.find(({ id }) => id === "m")?.predicate)

describe("seed files", () => {
  it.live("are put as a set: a monitor may name a network and a sink of the same set", () =>
    Effect.gen(function* () {
      const runtime = yield* start()
      assert.strictEqual(yield* apply(runtime, [monitor("args.value > 1"), sink, network]), 3)
      assert.strictEqual(yield* predicateOf(runtime), "args.value > 1")
      const sinks = yield* resourcesOf(runtime).sinks
      assert.deepStrictEqual(sinks.find(({ id }) => id === "out")?.retry, {
        maxAttempts: 3,
        initialBackoffMs: 200,
        maxBackoffMs: 30_000,
      })
      assert.strictEqual(yield* apply(runtime, [monitor("args.value > 1"), sink, network]), 0)
    }),
  )

  it.live("write every policy in snake_case", () =>
    Effect.gen(function* () {
      const runtime = yield* start()
      yield* apply(runtime, [
        file("network", "test", { id: "test", module: "scripted", config: {}, journal_depth: 64 }),
        file("sink", "out", {
          id: "out",
          module: "host:host",
          config: {},
          retry: { max_attempts: 3, initial_backoff_ms: 10, max_backoff_ms: 20 },
          throttle: { max_deliveries: 5, window_ms: 1000 },
          aggregate: { window_ms: 50, max_batch: 7 },
          concurrency: 4,
          buffer: "durable",
        }),
        file("sink", "defaults", { id: "defaults", module: "host:host", config: {}, throttle: {}, aggregate: {} }),
        ...[
          { type: "threshold", count: 3, window_ms: 3_600_000, by: "args.value" },
          { type: "max_once", window_ms: 60_000 },
        ].map((gate) =>
          file("monitor", gate.type, {
            id: gate.type,
            network: "test",
            selector: { name: "Transfer" },
            sinks: ["out"],
            gate,
          }),
        ),
      ])
      const { networks, sinks, monitors } = resourcesOf(runtime)
      assert.strictEqual((yield* networks)[0]!.journalDepth, 64)
      const policies = (yield* sinks).map(({ id, retry, throttle, aggregate, concurrency, buffer }) => [
        id,
        { retry, throttle, aggregate, concurrency, buffer },
      ])
      assert.deepInclude(Object.fromEntries(policies), {
        out: {
          retry: { maxAttempts: 3, initialBackoffMs: 10, maxBackoffMs: 20 },
          throttle: { maxDeliveries: 5, windowMs: 1000 },
          aggregate: { windowMs: 50, maxBatch: 7 },
          concurrency: 4,
          buffer: "DURABLE",
        },
        defaults: {
          retry: { maxAttempts: 8, initialBackoffMs: 200, maxBackoffMs: 30_000 },
          throttle: { maxDeliveries: 60, windowMs: 60_000 },
          aggregate: { windowMs: 30_000, maxBatch: 100 },
          concurrency: 1,
          buffer: "MEMORY",
        },
      })
      assert.deepStrictEqual(Object.fromEntries((yield* monitors).map(({ id, gate }) => [id, gate])), {
        threshold: { type: "threshold", count: 3, windowMs: 3_600_000, by: "args.value" },
        max_once: { type: "max_once", windowMs: 60_000, by: null },
      })
    }),
  )

  it.live("write the names of policies in small letters, or in capitals as GraphQL does", () =>
    Effect.gen(function* () {
      const runtime = yield* start()
      const gate = (id: string, type: string) =>
        file("monitor", id, {
          id,
          network: "test",
          selector: { name: "Transfer" },
          sinks: ["durable"],
          gate: { type, window_ms: 1, ...(type.startsWith("max") ? {} : { count: 2 }) },
        })
      const buffer = (id: string) => file("sink", id, { id, module: "host:host", config: {}, buffer: id })
      yield* apply(runtime, [
        network,
        buffer("durable"),
        buffer("MEMORY"),
        gate("capitals", "THRESHOLD"),
        gate("small", "max_once"),
      ])
      const { sinks, monitors } = resourcesOf(runtime)
      assert.deepStrictEqual(
        [
          (yield* sinks).flatMap(({ id, buffer: is }) => (id === "host" ? [] : is)),
          (yield* monitors).map((m) => m.gate?.type),
        ],
        [
          ["DURABLE", "MEMORY"],
          ["threshold", "max_once"],
        ],
      )
    }),
  )

  it.live("are told of wrong policies in their own words", () =>
    Effect.gen(function* () {
      const runtime = yield* start()
      const refused = (yield* Effect.flip(
        apply(runtime, [
          network,
          file("sink", "out", {
            id: "out",
            module: "host:host",
            config: {},
            retry: { initial_backoff_ms: 9, max_backoff_ms: 1 },
            throttle: { max_delivery: 1 },
            aggregate: { window_ms: 0, maxBatch: 1 },
          }),
          file("sink", "other", { id: "other", module: "host:host", config: {}, throttle: { max_delivery: 1 } }),
          file("monitor", "m", {
            id: "m",
            network: "test",
            selector: { name: "Transfer" },
            sinks: ["other"],
            gate: { type: "threshold", window_ms: 0, by: "windowMs" },
          }),
          file("sink", "backoff", {
            id: "backoff",
            module: "host:host",
            config: {},
            retry: { initial_backoff_ms: 9, max_backoff_ms: 1 },
          }),
        ]),
      )) as Refused
      assert.deepStrictEqual(
        refused.problems.map(({ path, message }) => `${path} ${message}`),
        [
          "sinks/out.json.aggregate.maxBatch unknown key; seed files write it as max_batch",
          "sinks/out.json.retry.initial_backoff_ms is 9 and above max_backoff_ms, which is 1; it must not be above it",
          "sinks/out.json.throttle.max_delivery is not a known key; known are max_deliveries, window_ms",
          "sinks/out.json.aggregate.window_ms must be an integer between 1 and 86400000 (one day in ms), not 0",
          "sinks/other.json.throttle.max_delivery is not a known key; known are max_deliveries, window_ms",
          "sinks/backoff.json.retry.initial_backoff_ms is 9 and above max_backoff_ms, which is 1; it must not be above it",
          "monitors/m.json.gate.count is missing; it must be an integer between 1 and 1000",
          "monitors/m.json.gate.window_ms must be an integer between 1 and 2073600000 (24 days in ms), not 0",
          "monitors/m.json.gate.by line 1, column 1: there is no field windowMs; the event has name (string), args (record), block (record)",
        ],
      )
    }),
  )

  it.live("that changed win; unchanged ones leave edits and deletions alone, over a restart", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "blockwatcher-")), "test.db")
      const files = (predicate: string) => [network, sink, monitor(predicate)]
      const first = yield* Scope.make()
      yield* Effect.gen(function* () {
        const runtime = yield* start(path).pipe(Scope.provide(first))
        yield* apply(runtime, files("args.value > 1"))
        const { putMonitor } = resourcesOf(runtime)
        yield* putMonitor({
          id: "m",
          network: "test",
          selector: { name: "Transfer" },
          predicate: "args.value > 2",
          sinks: ["out"],
        })
        yield* apply(runtime, files("args.value > 1"))
        assert.strictEqual(yield* predicateOf(runtime), "args.value > 2")
      })
      yield* Scope.close(first, Exit.void)

      const runtime = yield* start(path)
      yield* apply(runtime, files("args.value > 1"))
      assert.strictEqual(yield* predicateOf(runtime), "args.value > 2")
      yield* resourcesOf(runtime).deleteMonitor("m")
      yield* apply(runtime, files("args.value > 1"))
      assert.strictEqual(yield* predicateOf(runtime), undefined)
      yield* apply(runtime, files("args.value > 3"))
      assert.strictEqual(yield* predicateOf(runtime), "args.value > 3")
      yield* apply(runtime, [])
      assert.strictEqual(yield* predicateOf(runtime), "args.value > 3")
    }),
  )

  it.live("are refused whole, with the file and path of every problem", () =>
    Effect.gen(function* () {
      const runtime = yield* start()
      const refused = (yield* Effect.flip(
        apply(runtime, [
          network,
          file("network", "broken", "{ not json"),
          file("network", "twin", { id: "test", module: "scripted", config: {}, colour: "red" }),
          file("sink", "out", { id: "out", module: "host:host", config: {}, retry: { initial_backoff_ms: -1 } }),
          file("sink", "camel", { id: "camel", module: "host:host", config: {}, retry: { maxAttempts: 1 } }),
          file("sink", "unknown", { id: "unknown", module: "nope", config: {}, colour: "red", concurrency: 0 }),
          file("monitor", "m", { id: "m", network: "gone", selector: {}, sinks: ["out", "camel", "unknown"] }),
        ]),
      )) as Refused
      assert.deepStrictEqual(refused.problems.map(({ path }) => path).toSorted(), [
        "monitors/m.json.network",
        "networks/broken.json",
        "networks/test.json.id",
        "networks/twin.json.colour",
        "networks/twin.json.id",
        "sinks/camel.json.retry.maxAttempts",
        "sinks/out.json.retry.initial_backoff_ms",
        "sinks/unknown.json.colour",
        "sinks/unknown.json.concurrency",
        "sinks/unknown.json.module",
      ])
      assert.match(refused.problems.find(({ path }) => path === "networks/broken.json")!.message, /line 1/)
      assert.match(refused.problems.find(({ path }) => path.includes("camel"))!.message, /max_attempts/)
      assert.match(refused.problems.find(({ path }) => path.endsWith("twin.json.colour"))!.message, /journal_depth/)
      assert.deepStrictEqual(yield* resourcesOf(runtime).networks, [])
    }),
  )
})
