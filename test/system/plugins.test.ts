import { copyFile, readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { graphqlData } from "../support/graphql.ts"
import { startServe, temporaryFolder, waitFor, writeFiles } from "../support/process.ts"
import { networkNow } from "./network.ts"

const TIMEOUT_MS = 300_000

const EXAMPLES = join(import.meta.dirname, "../../examples/plugins")

const DOES_NOT_PARSE = `import { SinkPlugin } from "blockwatcher/plugin"

export default SinkPlugin.make({ name: "torn",
`

const THROWS = `const settings: { readonly url?: URL } = {}

export default { name: settings.url!.host }
`

interface Plugin {
  readonly name: string
  readonly kind: string
  readonly source: string
  readonly error: string | null
}

const lines = (path: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.promise(() => readFile(path, "utf8").catch(() => "")).pipe(
    Effect.map((text) => text.split("\n").filter((line) => line !== "")),
  )

describe("plugins in BLOCKWATCHER_PLUGINS_DIR", () => {
  it.live(
    "run as .ts files with no build and no node_modules, and a broken one stops nothing",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const archive = `${folder}/archive.jsonl`
        yield* writeFiles(folder, {
          "plugins/torn.ts": DOES_NOT_PARSE,
          "plugins/throws.ts": THROWS,
          "seeds/networks/clock.json": { id: "clock", module: "ticker", config: { interval_ms: 20 } },
          "seeds/monitors/even.json": { id: "even", network: "clock", selector: { every: 2 }, sinks: ["archive"] },
          "seeds/sinks/archive.json": { id: "archive", module: "file", config: { path: archive } },
        })
        for (const file of ["ticker.ts", "file-sink.ts"]) {
          yield* Effect.promise(() => copyFile(join(EXAMPLES, file), `${folder}/plugins/${file}`))
        }
        const variables = {
          DATABASE_URL: `sqlite:${folder}/rows.db`,
          SEEDS_DIR: `${folder}/seeds`,
          PLUGINS_DIR: `${folder}/plugins`,
        }
        const server = yield* startServe(variables)
        yield* waitFor("some ticks are in the file", lines(archive), (found) => found.length >= 3)
        assert.strictEqual((yield* networkNow(server.url, "clock")).state, "RUNNING")

        const { plugins } = yield* Effect.promise(() =>
          graphqlData<{ plugins: ReadonlyArray<Plugin> }>(server.url, `{ plugins { name kind source error } }`),
        )
        const shown = new Map(plugins.map((plugin) => [plugin.name, plugin]))
        for (const [name, kind] of [
          ["ticker", "source"],
          ["file", "sink"],
          ["evm-rpc", "source"],
          ["webhook", "sink"],
        ] as const) {
          assert.strictEqual(shown.get(name)?.error, null, name)
          assert.strictEqual(shown.get(name)?.kind, kind)
        }
        for (const [name, place] of [
          ["torn", "torn.ts:"],
          ["throws", "throws.ts:3"],
        ] as const) {
          const broken = shown.get(name)!
          assert.strictEqual(broken.source, `${folder}/plugins/${name}.ts`)
          assert.strictEqual(broken.kind, "unknown")
          assert.include(broken.error ?? "", place)
          const { stdout } = server.output
          assert.isTrue(
            stdout.split("\n").some((line) => line.includes(broken.source) && line.includes(place)),
            stdout,
          )
        }
        assert.strictEqual(yield* server.stop, 0)

        const before = yield* lines(archive)
        const again = yield* startServe(variables)
        yield* waitFor("it goes on", lines(archive), (found) => found.length > before.length + 3)
        assert.strictEqual(yield* again.stop, 0)
        const ticks = (yield* lines(archive)).map((line) => JSON.parse(line).event.event.tick as number)
        assert.deepStrictEqual(
          ticks,
          ticks.map((_, i) => ticks[0]! + 2 * i),
        )
      }),
    TIMEOUT_MS,
  )
})
