import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, extname, join } from "node:path"

/** A file or folder of a plugin directory that should hold a plugin. */
export interface PluginEntry {
  /** The path as the person who put it there knows it. */
  readonly path: string
  /** Its name without the extension. */
  readonly name: string
  /** The real path of the module to import, or why there is none. */
  readonly module: { readonly file: string; readonly folder: string } | { readonly reason: string }
}

const modules = new Set([".ts", ".js", ".mjs"])
const otherModules = new Set([".mts", ".cts", ".cjs", ".tsx", ".jsx"])

/**
 * The plugins of a directory, in the order of their names. Names that begin with `.` or `_`, `node_modules`, declaration
 * files and files that are no modules are left out. Throws when the directory cannot be read.
 */
export const listEntries = (directory: string): ReadonlyArray<PluginEntry> =>
  readdirSync(directory)
    .filter((file) => !/^[._]/.test(file) && file !== "node_modules" && !/\.d\.[cm]?ts$/.test(file))
    .toSorted()
    .flatMap((file) => entryOf(join(directory, file)))

const entryOf = (path: string): ReadonlyArray<PluginEntry> => {
  const extension = extname(path)
  try {
    const real = realpathSync(path)
    if (statSync(real).isDirectory()) return [{ path, name: basename(path), module: folderModule(real) }]
  } catch (error) {
    return [
      { path, name: basename(path, extension), module: { reason: `cannot be read: ${(error as Error).message}` } },
    ]
  }
  const name = basename(path, extension)
  if (modules.has(extension)) {
    const file = realpathSync(path)
    return [{ path, name, module: { file, folder: dirname(file) } }]
  }
  return otherModules.has(extension)
    ? [{ path, name, module: { reason: `a plugin file ends in .ts, .js or .mjs, not in ${extension}` } }]
    : []
}

const indexes = ["index.ts", "index.js", "index.mjs"]

const folderModule = (folder: string): PluginEntry["module"] => {
  const named = packageEntry(folder)
  if (typeof named === "object") return named
  if (named !== undefined) {
    const file = join(folder, named)
    return existsSync(file) && statSync(file).isFile()
      ? { file: realpathSync(file), folder }
      : { reason: `package.json names ${JSON.stringify(named)} as its entry, but there is no such file` }
  }
  const index = indexes.map((file) => join(folder, file)).find((file) => existsSync(file))
  return index === undefined
    ? {
        reason:
          `the folder has no ${indexes.join(", ")} and no package.json with "exports" or "main"; ` +
          "a folder that is no plugin may have a name that begins with '_'",
      }
    : { file: realpathSync(index), folder }
}

/** The file that a package.json names, nothing if it names none. */
const packageEntry = (folder: string): string | undefined | { readonly reason: string } => {
  const file = join(folder, "package.json")
  if (!existsSync(file)) return undefined
  try {
    const json: unknown = JSON.parse(readFileSync(file, "utf8"))
    if (typeof json !== "object" || json === null) return undefined
    const { exports, main } = json as { readonly exports?: unknown; readonly main?: unknown }
    return exportTarget(exports) ?? (typeof main === "string" ? main : undefined)
  } catch (error) {
    return { reason: `package.json is not readable: ${(error as Error).message}` }
  }
}

const conditions = new Set(["node", "import", "module-sync", "default"])

/** The target of `exports` for an `import` of the package itself. */
const exportTarget = (target: unknown): string | undefined => {
  if (typeof target === "string") return target
  if (Array.isArray(target)) return target.map(exportTarget).find((file) => file !== undefined)
  if (typeof target !== "object" || target === null) return undefined
  for (const [key, value] of Object.entries(target))
    if (key === "." || conditions.has(key)) {
      const file = exportTarget(value)
      if (file !== undefined) return file
    }
  return undefined
}
