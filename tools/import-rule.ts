import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

/*
 * Imports point one way: model <- plugin, predicate, storage <- pipeline <- actions <- engine <- server. A plugin imports
 * only core/plugin, core/model and its own folder; evm-mempool builds on evm-rpc. `node tools/import-rule.ts` names every import that breaks this.
 */

/** What each folder may import, besides itself. */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  "core/model": [],
  "core/plugin": ["core/model"],
  "core/predicate": ["core/model"],
  "core/storage": ["core/model", "core/plugin"],
  "core/pipeline": ["core/model", "core/plugin", "core/predicate", "core/storage"],
  "core/actions": ["core/model", "core/plugin", "core/predicate", "core/storage", "core/pipeline"],
  "core/engine": ["core/model", "core/plugin", "core/predicate", "core/storage", "core/pipeline", "core/actions"],
  "core/index.ts": ["core"],
  plugins: ["core/model", "core/plugin"],
  "plugins/sources/evm-mempool": ["core/model", "core/plugin", "plugins/sources/evm-rpc"],
  server: ["core", "plugins"],
}

/** Packages that name a chain or a transport, which core knows nothing of. */
const outsideCore = /^(viem|graphql|graphql-yoga|graphql-ws|ws|@pothos|@graphql-yoga|@escape\.tech)(\/|$)/

export interface Violation {
  readonly file: string
  readonly line: number
  readonly imported: string
  readonly rule: string
}

/** The import that breaks a rule, if one does. `file` is relative to the root, with `/` in it. */
const violation = (file: string, imported: string): string | undefined => {
  if (!imported.startsWith("."))
    return file.startsWith("core/") && outsideCore.test(imported)
      ? "core names no chain and no transport: this package belongs in a plugin or the server"
      : undefined
  const target = join(dirname(file), imported)
  const home = homeOf(file)
  if (home === undefined || isWithin(target, home.own)) return undefined
  const folders = allowed[home.rule] ?? []
  if (folders.some((folder) => isWithin(target, folder))) return undefined
  return `${home.own} may import only ${["itself", ...folders].join(", ")}`
}

/** Which rule holds for a file, and the folder that it may import from freely. */
const homeOf = (file: string): { readonly rule: string; readonly own: string } | undefined => {
  if (file.startsWith("plugins/")) {
    const own = file.split("/").slice(0, 3).join("/")
    return { rule: own in allowed ? own : "plugins", own }
  }
  const rule = Object.keys(allowed).find((folder) => isWithin(file, folder))
  return rule === undefined ? undefined : { rule, own: rule }
}

const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

// Statements begin a line, so that examples in comments do not count; `import("…")` also stands in types.
const specifiers = [
  /^[ \t]*(?:import|export)\b[^;'"`]*?\bfrom\s*["']([^"']+)["']/gm,
  /^[ \t]*import\s*["']([^"']+)["']/gm,
  /^(?![ \t]*(?:\*|\/\/)).*?\bimport\(\s*["']([^"']+)["']\s*\)/gm,
]

/** What a file imports that it may not. */
export const violationsIn = (file: string, source: string): ReadonlyArray<Violation> =>
  specifiers
    .flatMap((pattern) => [...source.matchAll(pattern)])
    .flatMap((match) => {
      const imported = match[1]!
      const rule = violation(file, imported)
      const line = source.slice(0, match.index + match[0].lastIndexOf(imported)).split("\n").length
      return rule === undefined ? [] : [{ file, line, imported, rule }]
    })
    .toSorted((a, b) => a.line - b.line)

/** All violations below a root folder that holds core/, plugins/ and server/. */
export const checkImports = (root: string): ReadonlyArray<Violation> =>
  ["core", "plugins", "server"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
      .toSorted()
      .flatMap((file) => violationsIn(file, readFileSync(join(root, file), "utf8"))),
  )

if (import.meta.main) {
  const violations = checkImports(fileURLToPath(new URL("..", import.meta.url)))
  for (const { file, line, imported, rule } of violations) console.error(`${file}:${line} imports ${imported}: ${rule}`)
  process.exitCode = violations.length === 0 ? 0 : 1
}
