import { Effect, Result } from "effect"
import type { Plugins } from "../plugin/registry.ts"
import type { StorageError } from "../storage/error.ts"
import type { StoredMonitor, StoredResources, StoredSink } from "../storage/stored.ts"
import type { Catalog, MonitorEntry } from "./catalog.ts"
import { compileMonitor } from "./compile-monitor.ts"
import type { SinkPauses } from "./sink-pauses.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/** A stored monitor with its compiled form, or why it does not compile here. */
export const monitorEntry = (catalog: Catalog, plugins: Plugins["Service"], stored: StoredMonitor): MonitorEntry => {
  const { definition, effectiveFrom } = stored
  const module = catalog.networks.get(definition.network)?.definition.module
  const plugin = module === undefined ? undefined : plugins.source(module)
  const active =
    plugin === undefined
      ? Result.fail([{ path: "network", message: `no source plugin is named "${module}"` }])
      : compileMonitor(plugin, definition)
  return { stored, active, effectiveFrom, waitsFor: null, error: null }
}

/**
 * Takes over what of the stored resources differs from what this process has: another one changed it. Answers the
 * networks that it concerns, and the networks and sinks that are gone, which are left to be removed.
 */
export const takeUpResources = Effect.fnUntraced(function* (
  stored: StoredResources,
  {
    catalog,
    sinks,
    plugins,
    putSink,
    pauses,
  }: {
    readonly catalog: Catalog
    readonly sinks: SinkRegistry
    readonly plugins: Plugins["Service"]
    readonly putSink: (sink: StoredSink) => Effect.Effect<void, StorageError>
    readonly pauses: Pick<SinkPauses<never>, "takeUp">
  },
) {
  const concerned = new Set<string>()
  const otherModule = new Set<string>()
  for (const network of stored.networks) {
    const { id, module } = network.definition
    const before = catalog.networks.get(id)
    if (before?.revision === network.revision) continue
    if (before?.definition.module !== module) otherModule.add(id)
    catalog.networks.set(id, network)
    concerned.add(id)
  }
  const otherSinks = new Set<string>()
  for (const sink of stored.sinks) {
    const { id } = sink.definition
    if (sinks.get(id)?.revision !== sink.revision) {
      yield* putSink(sink)
      otherSinks.add(id)
    }
    // Networks wait for a FAILED sink unless it is paused.
    if (sinks.handle(id).paused !== sink.paused) otherSinks.add(id)
    pauses.takeUp(id, sink.paused)
  }
  const left = new Map(catalog.monitors)
  for (const monitor of stored.monitors) {
    const { id, network, sinks: named } = monitor.definition
    const before = left.get(id)
    left.delete(id)
    if (named.some((sink) => otherSinks.has(sink))) concerned.add(network)
    if (before?.stored.revision === monitor.revision && !otherModule.has(network)) continue
    const entry = monitorEntry(catalog, plugins, monitor)
    // What matches as before goes on where it is: its batches are under way.
    const goesOn =
      before?.active._tag === "Success" &&
      before.stored.matchRevision === monitor.matchRevision &&
      before.stored.definition.enabled &&
      before.stored.definition.network === network &&
      !otherModule.has(network)
    catalog.monitors.set(id, goesOn ? { ...entry, active: before.active, effectiveFrom: before.effectiveFrom } : entry)
    concerned.add(network)
    if (before !== undefined) concerned.add(before.stored.definition.network)
  }
  for (const [id, { stored: monitor }] of left) {
    catalog.monitors.delete(id)
    concerned.add(monitor.definition.network)
  }
  const kept = {
    sinks: new Set(stored.sinks.map(({ definition }) => definition.id)),
    networks: new Set(stored.networks.map(({ definition }) => definition.id)),
  }
  const gone = {
    networks: [...catalog.networks.keys()].filter((id) => !kept.networks.has(id) && !catalog.deleting.has(id)),
    sinks: sinks.all().flatMap(({ definition: { id } }) => (kept.sinks.has(id) ? [] : [id])),
  }
  return { concerned, gone }
})
