import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const root = join(import.meta.dirname, "../..")

const isRow = (line: string): boolean => line.startsWith("| ") && !line.startsWith("| ---")

/** The rows of the tables whose last column is a test: what is promised, and where a test of which name shows it. */
const rowsOf = (document: string) => {
  let isTable = false
  return readFileSync(join(root, "docs", document), "utf8")
    .split("\n")
    .filter((line) => {
      if (!isRow(line)) isTable &&= line.startsWith("| ---")
      else if (line.endsWith("| test |")) isTable = true
      else return isTable
      return false
    })
    .map(
      (line) => /^\| (?<behaviour>.+) \| `(?<file>[^`]+)`: (?<title>.+) \|$/.exec(line)?.groups ?? { behaviour: line },
    )
}

describe.each([
  ["behaviours.md", 40],
  ["behaviours-actions.md", 40],
  ["providers.md", 40],
] as const)("docs/%s", (document, least) => {
  const rows = rowsOf(document)

  it("names a test for each behaviour", () => {
    assert.isAbove(rows.length, least)
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
