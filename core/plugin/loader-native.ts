import { existsSync } from "node:fs"
import { registerHooks } from "node:module"
import { builtInDirectories } from "./loader-builtin.ts"

/*
 * The process's one resolve hook for plugin folders. The loader requires this file, so that node itself loads it once
 * per process even where a test runner or bundler rewrites imports: its `import()` and `import.meta.resolve` are node's.
 */

/** File URLs, ending in `/`, of the real folders that hold plugins. */
const folders = new Set<string>()

/** What was resolved from within plugin folders: the files in which a syntax error may stand. */
const resolved = new Set<string>()

const ours = /^(effect|@effect\/[^/]+|viem|blockwatcher)(\/|$)/

/** `.ts` in a checkout, `.js` in the published package. */
const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."))

const isInPluginFolder = (url: string): boolean => {
  for (const folder of folders) if (url.startsWith(folder)) return true
  return false
}

/** The package's own modules, found beside this file: a checkout and a host without `exports` have them as well. */
const resolveOwn = (specifier: string): string => {
  if (specifier === "blockwatcher") return new URL(`../index${extension}`, import.meta.url).href
  if (specifier === "blockwatcher/plugin") return new URL(`./index${extension}`, import.meta.url).href
  const name = /^blockwatcher\/plugins\/([\w-]+)$/.exec(specifier)?.[1]
  for (const directory of name === undefined ? [] : builtInDirectories)
    for (const file of [`${name}/index${extension}`, `${name}${extension}`]) {
      const url = new URL(file, directory)
      if (existsSync(url)) return url.href
    }
  throw new Error(
    `a plugin cannot import "${specifier}": "blockwatcher/plugin" has what plugins use, ` +
      `beside "blockwatcher" and "blockwatcher/plugins/<name of a built-in plugin>"`,
  )
}

/** The runtime's own copy, or undefined where the host has none: then the plugin's own is taken. */
const resolveHosted = (specifier: string): string | undefined => {
  try {
    return import.meta.resolve(specifier)
  } catch {
    return undefined
  }
}

registerHooks({
  resolve: (specifier, context, next) => {
    const parent = context.parentURL
    // Resolving from here passes through this hook again, and a plugin folder may hold this very package.
    const fromPlugin = parent !== undefined && parent !== import.meta.url && isInPluginFolder(parent)
    const name = fromPlugin ? ours.exec(specifier)?.[1] : undefined
    if (name !== undefined) {
      const url = name === "blockwatcher" ? resolveOwn(specifier) : resolveHosted(specifier)
      if (url !== undefined) return { url, shortCircuit: true }
    }
    const result = next(specifier, context)
    if (!isInPluginFolder(result.url)) return result
    resolved.add(result.url)
    // A folder without a package.json says nothing about its files; this spares it node's guess and its warning.
    return result.url.endsWith(".ts") ? { ...result, format: "module-typescript" } : result
  },
})

/** Makes imports from this folder (a file URL ending in `/`, of its real path) get the runtime's packages. */
export const addPluginFolder = (url: string): void => {
  folders.add(url)
}

/** Files below a folder that plugins imported. */
export const resolvedBelow = (folder: string): ReadonlyArray<string> =>
  [...resolved].filter((url) => url.startsWith(folder))

/** Node's own `import()`. */
export const importNatively = (url: string): Promise<{ readonly default?: unknown }> => import(url)
