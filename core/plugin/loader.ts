import { createRequire } from "node:module"
import { dirname, extname } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type Duration, Effect, Semaphore } from "effect"
import { checkPlugin, remedy } from "./loader-check.ts"
import { listEntries, type PluginEntry } from "./loader-entry.ts"
import { describeImportError } from "./loader-error.ts"
import type { Plugin } from "./sink.ts"

/** What became of one file or folder of a plugin directory. */
export interface LoadedEntry {
  /** The file or folder. */
  readonly source: string
  /** The plugin's name; the file's name where there is no plugin. */
  readonly name: string
  /** The plugin, or why there is none. */
  readonly plugin: Plugin | { readonly reason: string }
}

const native = createRequire(import.meta.url)(
  `./loader-native${extname(import.meta.url)}`,
) as typeof import("./loader-native.ts")

/**
 * Imports every plugin of a directory (a path or file URL), at most `timeLimit` each. Never fails: what does not load is
 * an entry with a reason. A module is imported once in a process: a changed file shows after a restart.
 */
export const loadDirectory = Effect.fn("loadDirectory")(function* (directory: string | URL, timeLimit: Duration.Input) {
  const path = directory instanceof URL ? fileURLToPath(directory) : directory
  const entries = yield* Effect.try({ try: () => listEntries(path), catch: (error) => (error as Error).message }).pipe(
    Effect.match({
      onFailure: (message): ReadonlyArray<PluginEntry> => [
        { path, name: path, module: { reason: `the plugin directory cannot be read: ${message}` } },
      ],
      onSuccess: (found) => found,
    }),
  )
  return yield* Effect.forEach(entries, (entry) => oneAtATime.withPermit(loadEntry(entry, timeLimit)))
})

/** A `require` of a module that another import is just loading fails, so imports of the whole process take turns. */
const oneAtATime = Semaphore.makeUnsafe(1)

const loadEntry = Effect.fnUntraced(function* (entry: PluginEntry, timeLimit: Duration.Input) {
  const { module, path } = entry
  if ("reason" in module) return { source: path, name: entry.name, plugin: module } satisfies LoadedEntry
  const folder = pathToFileURL(`${module.folder}/`).href
  native.addPluginFolder(folder)
  native.addPluginFolder(pathToFileURL(`${dirname(module.file)}/`).href)
  const plugin = yield* Effect.tryPromise({
    try: () => native.importNatively(pathToFileURL(module.file).href),
    catch: (error) => error,
  }).pipe(
    Effect.map((imported) =>
      "default" in imported
        ? checkPlugin(imported.default, "the default export")
        : { reason: `the file has no default export; ${remedy}` },
    ),
    Effect.timeoutOrElse({
      duration: timeLimit,
      orElse: () =>
        Effect.succeed({ reason: "the import did not end in time; a plugin's file must not wait for anything" }),
    }),
    Effect.catch((error) =>
      describeImportError(error, module.folder, [
        module.file,
        ...native.resolvedBelow(folder).map((url) => fileURLToPath(url)),
      ]).pipe(Effect.map((reason) => ({ reason }))),
    ),
  )
  return { source: path, name: "reason" in plugin ? entry.name : plugin.name, plugin } satisfies LoadedEntry
})
