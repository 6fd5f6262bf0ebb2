import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const root = join(import.meta.dirname, "../..")

/** The rows of the tables: what is promised, and where a test of which name shows it. */
const rows = readFileSync(join(root, "docs/behaviours.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| ---") && !line.startsWith("| behaviour"))
  .map((line) => /^\| (?<behaviour>.+) \| `(?<file>[^`]+)`: (?<title>.+) \|$/.exec(line)?.groups ?? { behaviour: line })

describe("docs/behaviours.md", () => {
  it("names a test for each behaviour", () => {
    assert.isAbove(rows.length, 40)
    assert.deepStrictEqual(
      rows.filter(({ title }) => title === undefined).map(({ behaviour }) => behaviour),
      [],
    )
  })

  it("names tests that exist", () => {
    const missing = rows.filter(({ file, title }) => !readFileSync(join(root, "test", file!), "utf8").includes(title!))
    assert.deepStrictEqual(
      missing.map(({ file, title }) => `${file}: ${title}`),
      [],
    )
  })
})
