import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { violationsIn } from "../../tools/import-rule.ts"

const imported = (file: string, source: string) => violationsIn(file, source).map((found) => found.imported)

describe("the import rule", () => {
  it.each([
    ["core/model/cursor.ts", "../plugin/source.ts"],
    ["core/plugin/source.ts", "../storage/storage.ts"],
    ["core/predicate/cel.ts", "../storage/storage.ts"],
    ["core/storage/sqlite/a.ts", "../../engine/feed.ts"],
    ["core/pipeline/processor.ts", "../engine/feed.ts"],
    ["core/actions/runner.ts", "../engine/feed.ts"],
    ["core/engine/feed.ts", "../index.ts"],
    ["core/engine/feed.ts", "../../server/http.ts"],
    ["core/engine/feed.ts", "../../plugins/sinks/log/index.ts"],
    ["core/index.ts", "../server/http.ts"],
    ["plugins/sinks/log/index.ts", "../../../core/storage/storage.ts"],
    ["plugins/sinks/log/index.ts", "../../../core/index.ts"],
    ["plugins/sinks/log/index.ts", "../webhook/index.ts"],
    ["server/http.ts", "../test/support/x.ts"],
    ["core/engine/feed.ts", "viem"],
    ["core/engine/feed.ts", "graphql-yoga"],
    ["core/plugin/source.ts", "@pothos/core"],
  ])("keeps %s from %s", (file, specifier) => {
    expect(imported(file, `import { a } from "${specifier}"`)).toStrictEqual([specifier])
  })

  it.each([
    ["core/plugin/source.ts", "../model/cursor.ts"],
    ["core/plugin/source.ts", "./sink.ts"],
    ["core/storage/sqlite/a.ts", "../storage.ts"],
    ["core/engine/feed/reader.ts", "../../pipeline/processor.ts"],
    ["core/engine/feed.ts", "../actions/runner.ts"],
    ["core/index.ts", "./engine/feed.ts"],
    ["plugins/sources/evm-rpc/rpc/client.ts", "../wire.ts"],
    ["plugins/sources/evm-rpc/index.ts", "../../../core/model/cursor.ts"],
    ["plugins/sources/evm-rpc/index.ts", "viem"],
    ["server/graphql/schema.ts", "../../core/engine/feed.ts"],
    ["server/graphql/schema.ts", "graphql"],
    ["server/cli/engine.ts", "../../plugins/sinks/script/directory.ts"],
    ["core/engine/feed.ts", "effect"],
  ])("lets %s import %s", (file, specifier) => {
    expect(imported(file, `import { a } from "${specifier}"`)).toStrictEqual([])
  })

  it("reads every form of import, and tells the line", () => {
    const source = `
import type {
  A,
  B,
} from "../engine/a.ts"
import "../engine/b.ts"
export * from '../engine/c.ts'
export { type D } from "../engine/d.ts"
const e = await import("../engine/e.ts")
type F = import("../engine/f.ts").F
/**
 * import { x } from "../engine/comment.ts"
 */
// import("../engine/comment.ts")
const text = "from ../engine/text.ts"
export const g = 1
const list = ["../engine/list.ts"]
`
    expect(violationsIn("core/model/x.ts", source).map(({ line, imported }) => [line, imported])).toStrictEqual([
      [5, "../engine/a.ts"],
      [6, "../engine/b.ts"],
      [7, "../engine/c.ts"],
      [8, "../engine/d.ts"],
      [9, "../engine/e.ts"],
      [10, "../engine/f.ts"],
    ])
  })

  it("says what may be imported instead", () => {
    expect(violationsIn("core/plugin/a.ts", `import "../engine/b.ts"`)).toStrictEqual([
      {
        file: "core/plugin/a.ts",
        line: 1,
        imported: "../engine/b.ts",
        rule: "core/plugin may import only itself, core/model",
      },
    ])
  })

  it("is kept by this repository", async () => {
    const script = fileURLToPath(new URL("../../tools/import-rule.ts", import.meta.url))
    await expect(promisify(execFile)(process.execPath, [script])).resolves.toMatchObject({ stderr: "" })
  })
})
