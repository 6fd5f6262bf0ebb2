import { createHash } from "node:crypto"
import { existsSync, globSync } from "node:fs"
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { isBuiltin } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { build, type Rolldown } from "vite"

const root = join(import.meta.dirname, "../../..")

/** Where bundles are kept, each under the name of what it was made of; what they leave out is found from here. */
const FOLDER = join(root, "node_modules/.cache/blockwatcher-test")

/** Packages with native code or of one large file, CommonJS that does not survive bundling, what is looked for in vain, and the program. */
const LEFT_OUT = [
  "blockwatcher",
  "better-sqlite3",
  "minijinja-js",
  "@graphql-yoga/render-graphiql",
  "undici",
  "pg",
  "pg-cursor",
  "@mikro-orm/seeder",
  "@mikro-orm/entity-generator",
  "@mikro-orm/migrations-mongodb",
  "@foundry-rs/anvil",
]

/** Everything that the program and its examples import of packages, such as `effect/cli`. */
const importedByProgram = async (): Promise<ReadonlyArray<string>> => {
  const files = globSync("{core,plugins,server,examples}/**/*.ts", { cwd: root })
  const sources = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")))
  const imported = sources.flatMap((source) => [
    ...source.matchAll(/^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^".][^"]*)"/gm),
    ...source.matchAll(/\bimport\("([^".][^"]*)"\)/g),
  ])
  const names = new Set(imported.map(([, name]) => name!))
  return [...names].filter((name) => !isBuiltin(name) && !LEFT_OUT.some((left) => name.startsWith(left))).toSorted()
}

/** Tells a process to take what is bundled from the bundle, wherever it is imported. */
const register = (entries: Readonly<Record<string, string>>, inside: ReadonlyArray<string>): string => `
import { registerHooks } from "node:module"
const entries = new Map(Object.entries(${JSON.stringify(entries)}).map(([name, file]) => [name, new URL(file, import.meta.url).href]))
const inside = new Set(${JSON.stringify(inside)})
registerHooks({
  resolve(specifier, context, next) {
    const url = entries.get(specifier)
    if (url !== undefined) return { url, format: "module", shortCircuit: true }
    const found = next(specifier, context)
    // A second copy would have a state of its own.
    if (inside.has(found.url)) throw new Error(specifier + " is in the bundle, but the program does not import it")
    return found
  },
})
`

const bundle = async (names: ReadonlyArray<string>, folder: string): Promise<void> => {
  const exported = new Map<string, string>()
  for (const name of names) {
    const found = Object.keys((await import(name)) as object).filter((key) => key !== "module.exports")
    exported.set(name, `export { ${found.join(", ")} } from ${JSON.stringify(name)}`)
  }
  const entryOf = (name: string) => `entry-${names.indexOf(name)}`
  const { output } = (await build({
    root,
    configFile: false,
    logLevel: "silent",
    // What Node takes, which knows nothing of "module".
    resolve: { mainFields: ["main"], extensions: [".js", ".json", ".cjs", ".mjs"] },
    ssr: { noExternal: true, external: LEFT_OUT, resolve: { mainFields: ["main"], conditions: ["node", "import"] } },
    plugins: [
      {
        name: "entries",
        enforce: "pre",
        resolveId: (id, from) => (from === undefined && id.startsWith("entry-") ? join(root, id) : null),
        load: (id) =>
          id.startsWith(join(root, "entry-")) ? exported.get(names[Number(id.split("-").at(-1))]!)! : null,
      },
    ],
    build: {
      ssr: true,
      outDir: folder,
      emptyOutDir: true,
      minify: false,
      target: "node24",
      rolldownOptions: {
        input: Object.fromEntries(names.map((name) => [entryOf(name), entryOf(name)])),
        output: { keepNames: true },
      },
    },
  })) as Rolldown.RolldownOutput
  const files = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []))
  const entries = Object.fromEntries(names.map((name) => [name, `./${entryOf(name)}.js`]))
  const inside = files.map((file) => pathToFileURL(file).href)
  await writeFile(join(folder, "package.json"), `{ "type": "module" }`)
  await writeFile(join(folder, "register.js"), register(entries, inside))
}

/**
 * Puts the packages that the program imports into few files, and answers a module that makes a process take them from
 * there: it starts in a fraction of the time. What was made before of the same packages is used again.
 */
export const bundlePackages = async (): Promise<string> => {
  const names = await importedByProgram()
  const made = createHash("sha256").update(`${process.version} ${names.join(" ")} `)
  for (const file of [join(root, "package-lock.json"), import.meta.filename]) made.update(await readFile(file))
  const folder = join(FOLDER, made.digest("hex").slice(0, 16))
  const module = join(folder, "register.js")
  if (existsSync(module)) return module
  const unfinished = `${folder}.${process.pid}`
  await mkdir(FOLDER, { recursive: true })
  await bundle(names, unfinished)
  // Another run may have made the same meanwhile.
  await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true }))
  return module
}
