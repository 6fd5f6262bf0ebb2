import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema } from "effect"
import { builtInDirectories } from "../../../core/plugin/loader-builtin.ts"
import { Plugins, type PluginOrigins } from "../../../core/plugin/registry.ts"
import { SinkPlugin } from "../../../core/plugin/sink.ts"

const sink = (name: string) =>
  SinkPlugin.make({
    name,
    config: Schema.Struct({}),
    make: () => Effect.succeed({ deliver: () => Effect.void, timeoutMs: 1 }),
  })

const directory = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = mkdtempSync(join(tmpdir(), "blockwatcher-registry-"))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text)
      return root
    }),
    (root) => Effect.sync(() => rmSync(root, { recursive: true })),
  )

const file = (name: string): string => `
import { Effect, Schema } from "effect"
import { SinkPlugin } from "blockwatcher/plugin"
export default SinkPlugin.make({ name: "${name}", config: Schema.Struct({}), make: () => Effect.never })`

const load = (origins: PluginOrigins, lines: Array<string> = []) =>
  Layer.build(Plugins.layer(origins)).pipe(
    Effect.flatMap((context) => Effect.provide(Plugins, context)),
    Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])),
  )

describe("Plugins.layer", () => {
  it.live("offers what the host passes and what directories hold", () =>
    Effect.gen(function* () {
      const passed = sink("passed")
      const root = yield* directory({ "dropped.ts": file("dropped") })
      const plugins = yield* load({ plugins: [passed], directories: [pathToFileURL(`${root}/`)] })
      assert.strictEqual(plugins.sink("passed"), passed)
      assert.strictEqual(plugins.sink("dropped")?.name, "dropped")
      assert.isUndefined(plugins.source("dropped"))
      assert.isUndefined(plugins.sink("other"))
      assert.deepStrictEqual(plugins.reports, [
        { name: "passed", kind: "sink", source: "embedded", error: null, eventTime: null, resumable: null },
        {
          name: "dropped",
          kind: "sink",
          source: join(root, "dropped.ts"),
          error: null,
          eventTime: null,
          resumable: null,
        },
      ])
    }),
  )

  it.live("keeps the first of two with one name, reports the second and logs each failure once", () =>
    Effect.gen(function* () {
      const first = yield* directory({ "a.ts": file("twice") })
      const second = yield* directory({ "b.ts": file("twice"), "broken.ts": "nonsense nonsense" })
      const lines: Array<string> = []
      const plugins = yield* load({ plugins: [], directories: [first, second] }, lines)
      assert.deepStrictEqual(
        plugins.reports.map(({ name, error }) => [name, error === null]),
        [
          ["twice", true],
          ["twice", false],
          ["broken", false],
        ],
      )
      assert.include(plugins.reports[1]?.error, `(${join(first, "a.ts")}); choose another name`)
      assert.strictEqual(plugins.reports[2]?.kind, "unknown")
      assert.strictEqual(plugins.reports[2]?.source, join(second, "broken.ts"))
      assert.strictEqual(lines.length, 2)
      assert.match(lines[1] ?? "", /^plugin broken was not loaded: .*broken\.ts:1/)
    }),
  )

  it.live("loads the built-in plugins", () =>
    Effect.gen(function* () {
      const plugins = yield* load({ plugins: [], directories: builtInDirectories })
      assert.deepStrictEqual(
        plugins.reports.filter(({ error }) => error !== null),
        [],
      )
      assert.isDefined(plugins.source("evm-rpc"))
      for (const name of ["log", "script", "webhook"]) assert.isDefined(plugins.sink(name))
    }),
  )

  it.live("reports what the host passes and is no plugin", () =>
    Effect.gen(function* () {
      const wrong = { ...sink("half"), make: undefined } as unknown as SinkPlugin
      const plugins = yield* load({ plugins: [wrong, undefined as unknown as SinkPlugin], directories: [] })
      assert.match(plugins.reports[0]?.error ?? "", /make must be a function/)
      assert.match(plugins.reports[1]?.error ?? "", /a value that was passed in plugins is undefined/)
      assert.isUndefined(plugins.sink("half"))
    }),
  )
})
