import { Effect, Result, type Scope } from "effect"
import { type Problem, under } from "../model/problem.ts"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import type { Egress } from "../plugin/egress.ts"
import type { PluginRefused } from "../plugin/error.ts"
import { makeInTime } from "../plugin/make-in-time.ts"
import { unmaskConfig } from "../plugin/mask.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { SinkPlugin } from "../plugin/sink.ts"
import type { SourcePlugin } from "../plugin/source.ts"
import type { ResourceKind, Stored, StoredMonitor } from "../storage/stored.ts"
import { revisionOf } from "./canonical.ts"
import type { Catalog, MonitorEntry } from "./catalog.ts"
import { compileMonitor, matchRevisionOf } from "./compile-monitor.ts"
import { decodeDefinition } from "./decode-definition.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/** Definitions as they were written: JSON in camelCase. */
export interface DefinitionSet {
  readonly networks: ReadonlyArray<unknown>
  readonly monitors: ReadonlyArray<unknown>
  readonly sinks: ReadonlyArray<unknown>
}

/** A set that may be stored and run. */
export interface CheckedSet {
  readonly networks: ReadonlyArray<Stored<NetworkDefinition>>
  readonly monitors: ReadonlyArray<MonitorEntry>
  readonly sinks: ReadonlyArray<Stored<SinkDefinition>>
}

/** Why one definition was refused. */
export interface DefinitionProblems {
  readonly kind: ResourceKind
  /** Its place in the set's list of its kind. */
  readonly index: number
  readonly problems: ReadonlyArray<Problem>
}

export interface CheckContext {
  readonly catalog: Catalog
  readonly sinks: SinkRegistry
  readonly plugins: Plugins["Service"]
}

const missingPlugin = (plugins: Plugins["Service"], kind: "source" | "sink", name: string): Problem => {
  const report = plugins.reports.find((r) => r.name === name && r.error !== null)
  const loaded = plugins.reports.filter((r) => r.kind === kind && r.error === null).map((r) => r.name)
  return {
    path: "module",
    message:
      report === undefined
        ? `no ${kind} plugin is named "${name}"; there are: ${loaded.join(", ")}`
        : `the plugin "${name}" (${report.source}) did not load: ${report.error}`,
  }
}

/** Decodes the plugin's config, masked values put back, and builds the plugin once to see that it can be. */
const checkConfig = Effect.fnUntraced(function* (
  plugin: SourcePlugin | SinkPlugin,
  written: Readonly<Record<string, unknown>>,
  stored: unknown,
): Effect.fn.Return<Result.Result<Readonly<Record<string, unknown>>, ReadonlyArray<Problem>>, never, Egress | Secrets> {
  const config = unmaskConfig(written, stored, plugin.sensitive)
  if (Result.isFailure(config)) return Result.fail(under("config", config.failure))
  const decoded = decodeConfig(plugin.config, config.success, plugin.sensitive)
  if (Result.isFailure(decoded)) return Result.fail(under("config", decoded.failure))
  const built: Effect.Effect<unknown, PluginRefused, Scope.Scope | Egress | Secrets> = plugin.make(decoded.success)
  return yield* Effect.match(Effect.scoped(makeInTime(built)), {
    onFailure: ({ reason }) => Result.fail([{ path: "config", message: reason }]),
    onSuccess: () => Result.succeed(config.success),
  })
})

const checkNetwork = Effect.fnUntraced(function* ({ catalog, plugins }: CheckContext, input: unknown) {
  const { definition, problems } = decodeDefinition(NetworkDefinition, input)
  if (definition === null) return Result.fail(problems)
  if (catalog.deleting.has(definition.id)) {
    return Result.fail([
      ...problems,
      { path: "id", message: `network "${definition.id}" is being deleted; try again when it is gone` },
    ])
  }
  const plugin = plugins.source(definition.module)
  if (plugin === undefined) return Result.fail([...problems, missingPlugin(plugins, "source", definition.module)])
  const stored = catalog.networks.get(definition.id)
  const config = yield* checkConfig(plugin, definition.config, stored?.definition.config)
  if (Result.isFailure(config)) return Result.fail([...problems, ...config.failure])
  if (problems.length > 0) return Result.fail(problems)
  const complete = { ...definition, config: config.success }
  return Result.succeed<Stored<NetworkDefinition>>({ definition: complete, revision: revisionOf(complete) })
})

const checkSink = Effect.fnUntraced(function* ({ sinks, plugins }: CheckContext, input: unknown) {
  const { definition, problems: wrong } = decodeDefinition(SinkDefinition, input)
  if (definition === null) return Result.fail(wrong)
  const problems: Array<Problem> = [...wrong]
  const plugin = plugins.sink(definition.module)
  let config: Readonly<Record<string, unknown>> = definition.config
  if (plugin === undefined) problems.push(missingPlugin(plugins, "sink", definition.module))
  else {
    const checked = yield* checkConfig(plugin, definition.config, sinks.get(definition.id)?.definition.config)
    if (Result.isFailure(checked)) problems.push(...checked.failure)
    else config = checked.success
  }
  if (problems.length > 0) return Result.fail(problems)
  const complete = { ...definition, config }
  return Result.succeed<Stored<SinkDefinition>>({ definition: complete, revision: revisionOf(complete) })
})

/** Checks a monitor against the networks and sinks as they will be. */
const checkMonitor = (
  { catalog, plugins }: CheckContext,
  moduleOf: (network: string) => string | null | undefined,
  hasSink: (sink: string) => boolean,
  input: unknown,
): Result.Result<MonitorEntry, ReadonlyArray<Problem>> => {
  const { definition, problems: wrong } = decodeDefinition(MonitorDefinition, input)
  if (definition === null) return Result.fail(wrong)
  const problems: Array<Problem> = [...wrong]
  definition.sinks.forEach((sink, i) => {
    if (!hasSink(sink)) problems.push({ path: `sinks.${i}`, message: `there is no sink "${sink}"` })
    if (definition.sinks.indexOf(sink) < i) problems.push({ path: `sinks.${i}`, message: `"${sink}" is named twice` })
  })
  const module = moduleOf(definition.network)
  const plugin = typeof module === "string" ? plugins.source(module) : undefined
  let active: MonitorEntry["active"] = Result.fail([])
  if (module === undefined) {
    const state = catalog.deleting.has(definition.network) ? "is being deleted" : "does not exist"
    problems.push({ path: "network", message: `network "${definition.network}" ${state}` })
  } else if (plugin === undefined && module !== null) {
    problems.push({
      path: "network",
      message: `network "${definition.network}": ${missingPlugin(plugins, "source", module).message}`,
    })
  } else if (plugin !== undefined) {
    active = compileMonitor(plugin, definition)
    if (Result.isFailure(active)) problems.push(...active.failure)
  }
  if (problems.length > 0) return Result.fail(problems)
  const before = catalog.monitors.get(definition.id)
  const matchRevision = matchRevisionOf(definition)
  // An edit of the sinks alone leaves what runs alone; a monitor that was switched off has missed what happened since.
  const goesOn =
    before !== undefined && before.stored.matchRevision === matchRevision && before.stored.definition.enabled
  const effectiveFrom = goesOn && definition.enabled ? before.effectiveFrom : null
  const stored: StoredMonitor = { definition, revision: revisionOf(definition), matchRevision, effectiveFrom }
  return Result.succeed({ stored, active: goesOn ? before.active : active, effectiveFrom, error: null })
}

/**
 * Checks a set of definitions whole, against what is stored and against each other: a monitor may name a network or
 * sink of the same set. Answers everything that is wrong.
 */
export const checkDefinitions = Effect.fnUntraced(function* (
  context: CheckContext,
  set: DefinitionSet,
): Effect.fn.Return<Result.Result<CheckedSet, ReadonlyArray<DefinitionProblems>>, never, Egress | Secrets> {
  const refused: Array<DefinitionProblems> = []
  const networks: Array<Stored<NetworkDefinition>> = []
  const sinks: Array<Stored<SinkDefinition>> = []
  const monitors: Array<MonitorEntry> = []
  /** Ids of definitions that are refused themselves: what names them has no problem of its own. */
  const brokenNetworks = new Map<unknown, string | null>()
  const brokenSinks = new Set<unknown>()
  for (const [index, input] of set.networks.entries()) {
    const checked = yield* checkNetwork(context, input)
    if (Result.isSuccess(checked)) networks.push(checked.success)
    else {
      brokenNetworks.set(idOf(input), sourceOf(context, input))
      refused.push({ kind: "network", index, problems: checked.failure })
    }
  }
  for (const [index, input] of set.sinks.entries()) {
    const checked = yield* checkSink(context, input)
    if (Result.isSuccess(checked)) sinks.push(checked.success)
    else {
      brokenSinks.add(idOf(input))
      refused.push({ kind: "sink", index, problems: checked.failure })
    }
  }
  const moduleOf = (id: string) =>
    networks.find(({ definition }) => definition.id === id)?.definition.module ??
    (context.catalog.deleting.has(id) ? undefined : context.catalog.networks.get(id)?.definition.module) ??
    brokenNetworks.get(id)
  const hasSink = (id: string) =>
    sinks.some(({ definition }) => definition.id === id) || context.sinks.get(id) !== undefined || brokenSinks.has(id)
  for (const [index, input] of set.monitors.entries()) {
    const checked = checkMonitor(context, moduleOf, hasSink, input)
    if (Result.isSuccess(checked)) monitors.push(checked.success)
    else refused.push({ kind: "monitor", index, problems: checked.failure })
  }
  for (const { definition } of networks) {
    const { fitting, problems } = recompileMonitors(context, definition, monitors)
    monitors.push(...fitting)
    const index = set.networks.findIndex((input) => idOf(input) === definition.id)
    if (problems.length > 0) refused.push({ kind: "network", index, problems })
  }
  return refused.length > 0 ? Result.fail(refused) : Result.succeed({ networks, monitors, sinks })
})

const idOf = (input: unknown): unknown =>
  typeof input === "object" && input !== null && "id" in input ? input.id : undefined

/** The module of a network that is refused, if there is such a plugin: what its monitors say can be judged. */
const sourceOf = ({ plugins }: CheckContext, input: unknown): string | null =>
  typeof input === "object" &&
  input !== null &&
  "module" in input &&
  typeof input.module === "string" &&
  plugins.source(input.module) !== undefined
    ? input.module
    : null

/**
 * The stored monitors of a network whose module changes, compiled for the new one: they must still fit. So must those
 * that did not compile before, which a change of the network may have mended.
 */
const recompileMonitors = (
  { catalog, plugins }: CheckContext,
  network: NetworkDefinition,
  put: ReadonlyArray<MonitorEntry>,
): { readonly fitting: ReadonlyArray<MonitorEntry>; readonly problems: ReadonlyArray<Problem> } => {
  const plugin = plugins.source(network.module)
  const fitting: Array<MonitorEntry> = []
  const problems: Array<Problem> = []
  const moved = catalog.networks.get(network.id)?.definition.module !== network.module
  for (const entry of plugin === undefined ? [] : catalog.monitorsOf(network.id)) {
    const { definition } = entry.stored
    if (put.some(({ stored }) => stored.definition.id === definition.id)) continue
    if (!moved && Result.isSuccess(entry.active)) continue
    const active = compileMonitor(plugin!, definition)
    if (Result.isSuccess(active)) fitting.push({ ...entry, active })
    else {
      const reasons = active.failure.map(({ path, message }) => `${path}: ${message}`).join("; ")
      problems.push({ path: "module", message: `monitor "${definition.id}" does not fit it: ${reasons}` })
    }
  }
  return { fitting, problems }
}
