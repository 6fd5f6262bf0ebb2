import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { sinkConformance, sourceConformance } from "../../core/plugin/conformance.ts"
import { nothingOutside } from "../../core/plugin/conformance-check.ts"
import { Plugins } from "../../core/plugin/registry.ts"
import type { Sink } from "../../core/plugin/sink.ts"

// Loaded as a user's folder is: by node, with imports of `effect` and `blockwatcher/plugin` from outside.
const plugins = await Effect.runPromise(
  Layer.build(Plugins.layer({ plugins: [], directories: [new URL("../../examples/plugins/", import.meta.url)] })).pipe(
    Effect.flatMap((context) => Effect.provide(Plugins, context)),
    Effect.scoped,
  ),
)
const ticker = plugins.source("ticker")!
const file = plugins.sink("file")!

describe("the example plugins", () => {
  it("load from their folder", () => {
    assert.deepStrictEqual(
      plugins.reports.map(({ name, kind, error }) => ({ name, kind, error })),
      [
        { name: "file", kind: "sink", error: null },
        { name: "ticker", kind: "source", error: null },
      ],
    )
  })
})

describe("the ticker", () => {
  const now = Math.floor(Date.now() / 1000)
  for (const { name, effect } of sourceConformance({
    plugin: ticker,
    config: { interval_ms: 1000 },
    refusedConfigs: [{}, { interval_ms: 0 }, { interval_ms: 1.5 }, { interval_ms: 1000, other: 1 }],
    selectors: [{ every: 1 }, { every: 7 }],
    refusedSelectors: [{}, { every: 0 }],
    range: { from: now - 1400, to: now - 1 },
  }))
    it.live(name, () => effect)
})

const root = mkdtempSync(join(tmpdir(), "blockwatcher-file-sink-"))
mkdirSync(join(root, "folder"))
writeFileSync(join(root, "plain"), "")
afterAll(() => rmSync(root, { recursive: true }))

const config = (name: string) => ({ path: join(root, name) })

const withSink = <A>(path: string, use: (sink: Sink) => Effect.Effect<A, unknown>) =>
  file.make({ path }).pipe(Effect.flatMap(use), Effect.scoped, Effect.provide(nothingOutside))

const deliver = (sink: Sink, id: string) =>
  sink.deliver(
    { type: "retracted", match_id: id },
    { id: `${id}-r`, body: `{"match_id":"${id}"}`, attempt: 1, nonce: null },
  )

describe("the file sink", () => {
  for (const { name, effect } of sinkConformance({
    plugin: file,
    config: config("all.jsonl"),
    refusedConfigs: [{}, { path: "" }, { path: "relative.jsonl" }, { path: "/a", mode: 1 }],
    failures: [
      { name: "the path is a folder", config: config("folder"), expected: "Permanent" },
      { name: "the folder is not there", config: config("missing/a.jsonl"), expected: "Transient" },
      { name: "the folder is a file", config: config("plain/a.jsonl"), expected: "Permanent" },
    ],
  }))
    it.live(name, () => effect)

  it.live("writes nothing when it is built, then whole lines in order", () =>
    Effect.gen(function* () {
      const target = join(root, "lines.jsonl")
      yield* withSink(target, (sink) =>
        Effect.gen(function* () {
          assert.isFalse(existsSync(target))
          yield* Effect.forEach(["a", "b", "c"], (id) => deliver(sink, id), { concurrency: "unbounded" })
        }),
      )
      assert.deepStrictEqual(readFileSync(target, "utf8").split("\n"), [
        '{"id":"a-r","event":{"match_id":"a"}}',
        '{"id":"b-r","event":{"match_id":"b"}}',
        '{"id":"c-r","event":{"match_id":"c"}}',
        "",
      ])
    }),
  )

  it.live("begins a new line behind half a line that a crash left", () =>
    Effect.gen(function* () {
      const target = join(root, "torn.jsonl")
      writeFileSync(target, '{"id":"x","ev')
      yield* withSink(target, (sink) => deliver(sink, "a"))
      assert.strictEqual(readFileSync(target, "utf8"), '{"id":"x","ev\n{"id":"a-r","event":{"match_id":"a"}}\n')
    }),
  )
})
