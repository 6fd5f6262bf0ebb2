import { Context, Effect, Layer } from "effect"
import { checkPlugin } from "./loader-check.ts"
import { loadDirectory, type LoadedEntry } from "./loader.ts"
import type { Plugin, SinkPlugin } from "./sink.ts"
import type { SourcePlugin } from "./source.ts"

/** A plugin as it was found: loaded, or why it was not. */
export interface PluginReport {
  readonly name: string
  readonly kind: "source" | "sink" | "unknown"
  /** The file or folder that it came from, `embedded` for one that the host program passed. */
  readonly source: string
  readonly error: string | null
  /** Of a source: whether its events have a time, as gates need it. Null otherwise. */
  readonly eventTime: boolean | null
  /** Of a source: whether it goes on where it stopped, and back when it is rewound. Null otherwise. */
  readonly resumable: boolean | null
}

/** Where plugins come from: values of the host program, then directories (paths or file URLs), in this order. */
export interface PluginOrigins {
  readonly plugins: ReadonlyArray<Plugin>
  readonly directories: ReadonlyArray<string | URL>
}

/** The plugins that resources can name. */
export class Plugins extends Context.Service<
  Plugins,
  {
    readonly source: (name: string) => SourcePlugin | undefined
    readonly sink: (name: string) => SinkPlugin | undefined
    readonly reports: ReadonlyArray<PluginReport>
  }
>()("blockwatcher/Plugins") {
  /**
   * Loads all plugins. Of two with one kind and name the first stays. Never fails: what was not loaded is logged here,
   * once, and stands in `reports`.
   */
  static readonly layer = (origins: PluginOrigins): Layer.Layer<Plugins> => Layer.effect(Plugins, loadAll(origins))
}

/** An import is cut off then. */
const IMPORT_LIMIT = "10 seconds"

const loadAll = Effect.fnUntraced(function* ({ plugins, directories }: PluginOrigins) {
  const loaded = yield* Effect.forEach(directories, (directory) => loadDirectory(directory, IMPORT_LIMIT))
  const registry = register([...plugins.map(embedded), ...loaded.flat()])
  yield* Effect.forEach(
    registry.reports.filter(({ error }) => error !== null),
    ({ name, source, error }) =>
      Effect.logWarning(`plugin ${name} was not loaded: ${error}`).pipe(Effect.annotateLogs({ plugin: name, source })),
    { discard: true },
  )
  return Plugins.of(registry)
})

const embedded = (plugin: Plugin): LoadedEntry => {
  const checked = checkPlugin(plugin, "a value that was passed in plugins")
  const name: unknown = plugin?.name
  return { source: "embedded", name: typeof name === "string" ? name : "embedded", plugin: checked }
}

/** Sorts plugins by kind and name, and reports on each in the given order. */
const register = (entries: ReadonlyArray<LoadedEntry>): Plugins["Service"] => {
  const taken = new Map<string, { readonly plugin: Plugin; readonly source: string }>()
  const reports = entries.map(({ name, source, plugin }): PluginReport => {
    if ("reason" in plugin) {
      return { name, kind: "unknown", source, error: plugin.reason, eventTime: null, resumable: null }
    }
    const key = `${plugin.kind} ${plugin.name}`
    const first = taken.get(key)
    if (first === undefined) taken.set(key, { plugin, source })
    const error =
      first === undefined
        ? null
        : `there is a ${plugin.kind} plugin of the name ${plugin.name} already (${first.source}); choose another name`
    const { eventTime, resumable } = plugin.kind === "source" ? plugin : { eventTime: null, resumable: null }
    return { name, kind: plugin.kind, source, error, eventTime, resumable }
  })
  return {
    source: (name) => taken.get(`source ${name}`)?.plugin as SourcePlugin | undefined,
    sink: (name) => taken.get(`sink ${name}`)?.plugin as SinkPlugin | undefined,
    reports,
  }
}

export type { Plugin }
