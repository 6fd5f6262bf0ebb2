import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { loadDirectory, type LoadedEntry } from "../../../core/plugin/loader.ts"

const write = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
}

const directory = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = realpathSync(mkdtempSync(join(tmpdir(), "blockwatcher-plugins-")))
      write(root, files)
      return root
    }),
    (root) => Effect.sync(() => rmSync(root, { recursive: true })),
  )

const sink = (name: string, extra = ""): string => `
import { Effect, Schema } from "effect"
import { SinkPlugin } from "blockwatcher/plugin"
${extra}
export default SinkPlugin.make({
  name: ${JSON.stringify(name)},
  config: Schema.Struct({}),
  make: () => Effect.succeed({ deliver: () => Effect.void, timeoutMs: 1000 }),
})
`

const plain = (name: string): string =>
  sink(name).replace(
    /^import .* from "blockwatcher\/plugin"$/m,
    "const SinkPlugin = { make: (d) => ({ kind: 'sink', sensitive: [], ...d }) }",
  )

const load = (path: string) => loadDirectory(path, "20 seconds")

const outcome = ({ name, plugin }: LoadedEntry): string => ("reason" in plugin ? `${name}: ${plugin.reason}` : name)

const reasonOf = (entries: ReadonlyArray<LoadedEntry>, file: string): string => {
  const entry = entries.find(({ source }) => source.endsWith(file))
  assert.isDefined(entry)
  assert.isTrue("reason" in entry.plugin, `${file} should not load`)
  return "reason" in entry.plugin ? entry.plugin.reason : ""
}

describe("a plugin directory", () => {
  it.live("loads files of every kind and folders, without any package.json or node_modules", () =>
    Effect.gen(function* () {
      const root = yield* directory({
        "a.ts": sink("typed", "const n: number = 1\nvoid n"),
        "b.js": sink("script"),
        "c.mjs": sink("module"),
        "d/index.ts": `import name from "./name.ts"\n${sink("x").replace('"x"', "name")}`,
        "d/name.ts": `export default "folder" as string`,
        "e/index.js": sink("script-folder"),
        "f/package.json": JSON.stringify({ exports: { ".": { types: "./x.d.ts", default: "./lib/main.ts" } } }),
        "f/lib/main.ts": sink("exported"),
        "g/package.json": JSON.stringify({ main: "entry.cjs" }),
        "g/entry.cjs": `
          const { Effect, Schema } = require("effect")
          const { SinkPlugin } = require("blockwatcher/plugin")
          module.exports = SinkPlugin.make({ name: "required", config: Schema.Struct({}), make: () => Effect.never })`,
        "README.md": "text",
        "_shared/helper.ts": "throw new Error('not a plugin')",
        ".hidden.ts": "throw new Error('not a plugin')",
        "types.d.ts": "export {}",
        "node_modules/x/index.js": "throw new Error('not a plugin')",
      })
      assert.deepStrictEqual((yield* load(root)).map(outcome), [
        "typed",
        "script",
        "module",
        "folder",
        "script-folder",
        "exported",
        "required",
      ])
    }),
  )

  it.live("gives plugins the runtime's own modules, whatever copies they bring", () =>
    Effect.gen(function* () {
      const same = `
import * as E from "effect"
import * as S from "effect/Schema"
import { NodeHttpClient } from "@effect/platform-node"
import { isAddress } from "viem"
import { egressKey } from "third-party"
import { Egress } from "blockwatcher/plugin"
`
      const root = yield* directory({
        "one.ts": sink("one", same).replace(
          "make: ()",
          "identity: { E, S, NodeHttpClient, isAddress, third: egressKey, Egress },\n  make: ()",
        ),
        "node_modules/effect/package.json": JSON.stringify({ name: "effect", exports: "./index.js", type: "module" }),
        "node_modules/effect/index.js": "export const Effect = 'wrong copy', Schema = {}",
        "node_modules/third-party/package.json": JSON.stringify({ exports: "./index.js", type: "module" }),
        "node_modules/third-party/index.js": `import { Effect } from "effect"; export const egressKey = Effect`,
      })
      const [entry] = yield* load(root)
      assert.isDefined(entry)
      assert.strictEqual(outcome(entry), "one")
      const { identity } = entry.plugin as unknown as { readonly identity: Record<string, any> }
      assert.strictEqual(identity["E"].Schema, Schema)
      assert.strictEqual(identity["E"].Effect.gen, Effect.gen)
      assert.strictEqual(identity["S"].Struct, Schema.Struct)
      assert.strictEqual(identity["third"].gen, Effect.gen)
      assert.strictEqual(identity["Egress"].key, "blockwatcher/Egress")
      assert.isTrue(identity["isAddress"]("0x0000000000000000000000000000000000000001"))
    }),
  )

  it.live("follows symlinks to files and folders elsewhere", () =>
    Effect.gen(function* () {
      const elsewhere = yield* directory({ "file.ts": sink("linked-file"), "folder/index.ts": sink("linked-folder") })
      const root = yield* directory({})
      symlinkSync(join(elsewhere, "file.ts"), join(root, "file.ts"))
      symlinkSync(join(elsewhere, "folder"), join(root, "folder"))
      symlinkSync(join(elsewhere, "nowhere.ts"), join(root, "dangling.ts"))
      const link = `${root}-link`
      yield* Effect.acquireRelease(
        Effect.sync(() => symlinkSync(root, link)),
        () => Effect.sync(() => rmSync(link)),
      )
      const [dangling, ...rest] = (yield* load(link)).map(outcome)
      assert.match(dangling ?? "", /^dangling: cannot be read: .*ENOENT/)
      assert.deepStrictEqual(rest, ["linked-file", "linked-folder"])
    }),
  )

  it.live("says for each that fails what is wrong and where, and loads the others", () =>
    Effect.gen(function* () {
      const root = yield* directory({
        "good.ts": sink("good"),
        "typescript.ts": "const x = 1\n\nconst y = = 2\n",
        "javascript.mjs": "export const a = 1\n\nexport default { a: , }\n",
        "deep/index.js": `import "./bad.js"`,
        "deep/bad.js": "export const b = 1\nexport const b = 2",
        "enum.ts": "enum A { x }\nexport default A",
        "throws.ts": "const f = () => {\n  throw new Error('no licence')\n}\nf()\n",
        "text.ts": "throw 'a text'",
        "missing.ts": `import x from "not-there"\nexport default x`,
        "server.ts": `import x from "blockwatcher/server"\nexport default x`,
        "empty.ts": "export const a = 1",
        "function.ts": "export default () => 1",
        "kind.ts": "export default { name: 'x' }",
        "half.ts": "export default { kind: 'source', name: 'a b', config: 1, sensitive: 'url', fixed: [], make: 1 }",
        "folder/readme.txt": "",
        "wrong-main/package.json": JSON.stringify({ main: "gone.js" }),
        "wrong-json/package.json": "{",
        "other.mts": "",
      })
      const entries = yield* load(root)
      const reason = (file: string) => reasonOf(entries, file)
      assert.strictEqual(entries.filter(({ plugin }) => !("reason" in plugin)).length, 1)
      assert.strictEqual(reason("typescript.ts"), `SyntaxError: Expression expected (${root}/typescript.ts:3)`)
      assert.strictEqual(reason("javascript.mjs"), `SyntaxError: Unexpected token ',' (${root}/javascript.mjs:3)`)
      assert.match(reason("deep"), /'b' has already been declared \(.*\/deep\/bad\.js:2\)$/)
      assert.match(reason("enum.ts"), /enum is not supported.*enum\.ts:1\)$/)
      assert.strictEqual(reason("throws.ts"), `Error: no licence (${root}/throws.ts:2)`)
      assert.strictEqual(reason("text.ts"), `the import threw "a text", not an Error`)
      assert.match(reason("missing.ts"), /Cannot find package 'not-there' imported from .*missing\.ts/)
      assert.match(reason("server.ts"), /cannot import "blockwatcher\/server": "blockwatcher\/plugin" has what/)
      assert.match(reason("empty.ts"), /no default export; it must be what SourcePlugin\.make/)
      assert.match(reason("function.ts"), /the default export is a function/)
      assert.match(reason("kind.ts"), /no kind "source" or "sink"/)
      for (const field of ["name", "config", "sensitive", "make", "selector", "describe", "address"])
        assert.match(reason("half.ts"), new RegExp(`[:;] ${field} must `))
      assert.notMatch(reason("half.ts"), /fixed/)
      assert.match(reason("folder"), /no index\.ts, index\.js, index\.mjs and no package\.json/)
      assert.match(reason("wrong-main"), /"gone\.js".*no such file/)
      assert.match(reason("wrong-json"), /package\.json is not readable/)
      assert.match(reason("other.mts"), /ends in \.ts, \.js or \.mjs, not in \.mts/)
    }),
  )

  it.live("gives up an import that never ends", () =>
    Effect.gen(function* () {
      const root = yield* directory({ "stuck.ts": "await new Promise(() => {})", "good.mjs": plain("good") })
      const entries = yield* loadDirectory(root, "3 seconds")
      assert.deepStrictEqual(
        entries.map(({ name }) => name),
        ["good", "stuck"],
      )
      assert.match(reasonOf(entries, "stuck.ts"), /did not end in time/)
    }),
  )

  it.live("reports a directory that cannot be read", () =>
    Effect.gen(function* () {
      const [entry] = yield* load("/nowhere/at-all")
      assert.isDefined(entry)
      assert.match(outcome(entry), /^\/nowhere\/at-all: the plugin directory cannot be read: ENOENT/)
    }),
  )

  it.live("works in a process of node itself, and prints no warnings", () =>
    Effect.gen(function* () {
      const loader = new URL("../../../core/plugin/loader.ts", import.meta.url).href
      const root = yield* directory({ "plugins/a.ts": sink("a"), "plugins/own/index.ts": sink("own") })
      write(root, {
        // Through symlinks the folders of the program and of the runtime are plugin folders: their imports still work.
        "main.mjs": `
          import { loadDirectory } from ${JSON.stringify(loader)}
          const { Effect } = await import(${JSON.stringify(import.meta.resolve("effect"))})
          const entries = await Effect.runPromise(loadDirectory(process.argv[2], "20 seconds"))
          console.log(JSON.stringify(entries.map((e) => [e.name, e.plugin.reason ?? e.plugin.kind])))`,
        "self.ts": sink("self"),
      })
      symlinkSync(join(root, "self.ts"), join(root, "plugins/self.ts"))
      symlinkSync(fileURLToPath(new URL("error.ts", loader)), join(root, "plugins/0.ts"))
      const { stdout, stderr } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [join(root, "main.mjs"), join(root, "plugins")]),
      )
      const [runtime, ...loaded] = JSON.parse(stdout)
      assert.match(runtime[1], /^the file has no default export/)
      assert.deepStrictEqual(loaded, [
        ["a", "sink"],
        ["own", "sink"],
        ["self", "sink"],
      ])
      assert.strictEqual(stderr, "")
    }),
  )
})
