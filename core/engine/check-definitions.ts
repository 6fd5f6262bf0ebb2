import { Effect, Result } from "effect"
import type { Problem } from "../model/problem.ts"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import type { Egress } from "../plugin/egress.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { ResourceKind, Stored, StoredMonitor } from "../storage/stored.ts"
import { actionsProblems } from "./actions-sink.ts"
import { revisionOf } from "./canonical.ts"
import type { Catalog, MonitorEntry } from "./catalog.ts"
import { checkConfig } from "./check-config.ts"
import { compileMonitor, matchRevisionOf, type MonitorParts, monitorProblems } from "./compile-monitor.ts"
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

type Config = Readonly<Record<string, unknown>>

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

/** What of a definition a plugin judges, as far as it can be read. */
interface PluginParts {
  readonly module?: string
  readonly config?: Readonly<Record<string, unknown>>
}

/** Checks the module and config of a network or sink; answers the config as it is stored. */
const checkPlugin = Effect.fnUntraced(function* (
  plugins: Plugins["Service"],
  kind: "source" | "sink",
  { module, config }: PluginParts,
  stored: unknown,
): Effect.fn.Return<Result.Result<Config, ReadonlyArray<Problem>>, never, Egress | Secrets> {
  if (module === undefined) return Result.succeed({})
  const plugin = kind === "source" ? plugins.source(module) : plugins.sink(module)
  if (plugin === undefined) return Result.fail([missingPlugin(plugins, kind, module)])
  return config === undefined ? Result.succeed({}) : yield* checkConfig(plugin, config, stored)
})

const checkNetwork = Effect.fnUntraced(function* ({ catalog, plugins }: CheckContext, input: unknown) {
  const { definition, fields, problems: wrong } = decodeDefinition(NetworkDefinition, input)
  const problems: Array<Problem> = [...wrong]
  const { id = "" } = fields
  if (catalog.deleting.has(id)) {
    problems.push({ path: "id", message: `network "${id}" is being deleted; try again when it is gone` })
  }
  const config = yield* checkPlugin(plugins, "source", fields, catalog.networks.get(id)?.definition.config)
  if (Result.isFailure(config)) problems.push(...config.failure)
  if (definition === null || Result.isFailure(config) || problems.length > 0) return Result.fail(problems)
  const complete = { ...definition, config: config.success }
  return Result.succeed<Stored<NetworkDefinition>>({ definition: complete, revision: revisionOf(complete) })
})

const checkSink = Effect.fnUntraced(function* ({ sinks, plugins }: CheckContext, input: unknown) {
  const { definition, fields, problems: wrong } = decodeDefinition(SinkDefinition, input)
  const problems = [...wrong, ...actionsProblems(plugins, fields)]
  const config = yield* checkPlugin(plugins, "sink", fields, sinks.get(fields.id ?? "")?.definition.config)
  if (definition === null || Result.isFailure(config) || problems.length > 0) {
    return Result.fail([...problems, ...(Result.isFailure(config) ? config.failure : [])])
  }
  const complete = { ...definition, config: config.success }
  return Result.succeed<Stored<SinkDefinition>>({ definition: complete, revision: revisionOf(complete) })
})

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as { readonly [name: string]: unknown })[name]
    : undefined

/** What of a monitor can be compiled, though other fields of it may be wrong. */
const partsOf = (input: unknown, { selector, predicate = null }: Partial<MonitorDefinition>): MonitorParts => {
  const gate = fieldOf(input, "gate")
  const by = fieldOf(gate, "by")
  return {
    selector: selector ?? null,
    predicate,
    by: typeof by === "string" ? by : null,
    isGated: typeof gate === "object" && gate !== null,
  }
}

/** The sinks that a monitor names, though one of them may be no id. */
const sinksNamed = (input: unknown, fields: Partial<MonitorDefinition>): ReadonlyArray<unknown> => {
  const written = fields.sinks ?? fieldOf(input, "sinks")
  return Array.isArray(written) ? written : []
}

/** Checks a monitor against the networks and sinks as they will be. */
const checkMonitor = (
  { catalog, plugins }: CheckContext,
  moduleOf: (network: string) => string | null | undefined,
  hasSink: (sink: string) => boolean,
  input: unknown,
): Result.Result<MonitorEntry, ReadonlyArray<Problem>> => {
  const { definition, fields, problems: wrong } = decodeDefinition(MonitorDefinition, input)
  const problems: Array<Problem> = [...wrong]
  const named = sinksNamed(input, fields)
  named.forEach((sink, i) => {
    const path = `sinks.${i}`
    if (typeof sink !== "string" || wrong.some((problem) => problem.path === path)) return
    if (!hasSink(sink)) problems.push({ path, message: `there is no sink "${sink}"` })
    if (named.indexOf(sink) < i) problems.push({ path, message: `"${sink}" is named twice` })
  })
  const { network } = fields
  const module = network === undefined ? null : moduleOf(network)
  const plugin = typeof module === "string" ? plugins.source(module) : undefined
  if (module === undefined) {
    const state = catalog.deleting.has(network!) ? "is being deleted" : "does not exist"
    problems.push({ path: "network", message: `network "${network}" ${state}` })
  } else if (plugin === undefined && module !== null) {
    const { message } = missingPlugin(plugins, "source", module)
    problems.push({ path: "network", message: `network "${network}": ${message}` })
  }
  if (definition === null || plugin === undefined) {
    problems.push(...monitorProblems(plugin ?? null, partsOf(input, fields)))
    return Result.fail(problems)
  }
  const active = compileMonitor(plugin, definition)
  if (Result.isFailure(active)) problems.push(...active.failure)
  if (problems.length > 0) return Result.fail(problems)
  const before = catalog.monitors.get(definition.id)
  const matchRevision = matchRevisionOf(definition)
  // An edit of the sinks alone leaves what runs alone; a monitor that was switched off has missed what happened since.
  const goesOn =
    before !== undefined && before.stored.matchRevision === matchRevision && before.stored.definition.enabled
  const effectiveFrom = goesOn && definition.enabled ? before.effectiveFrom : null
  const stored: StoredMonitor = { definition, revision: revisionOf(definition), matchRevision, effectiveFrom }
  return Result.succeed({ stored, active: goesOn ? before.active : active, effectiveFrom, waitsFor: null, error: null })
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
    (brokenNetworks.has(id) ? brokenNetworks.get(id) : storedModuleOf(context, id))
  const hasSink = (id: string) =>
    sinks.some(({ definition }) => definition.id === id) || context.sinks.get(id) !== undefined || brokenSinks.has(id)
  for (const [index, input] of set.monitors.entries()) {
    const checked = checkMonitor(context, moduleOf, hasSink, input)
    if (Result.isSuccess(checked)) monitors.push(checked.success)
    else refused.push({ kind: "monitor", index, problems: checked.failure })
  }
  const ids = set.monitors.map(idOf)
  for (const [index, input] of set.networks.entries()) {
    const module = sourceOf(context, input)
    if (module === null) continue
    const { fitting, problems } = recompileMonitors(context, { id: String(idOf(input)), module }, ids)
    monitors.push(...fitting)
    if (problems.length === 0) continue
    const known = refused.findIndex((one) => one.kind === "network" && one.index === index)
    const before = known < 0 ? [] : refused.splice(known, 1)[0]!.problems
    refused.push({ kind: "network", index, problems: [...before, ...problems] })
  }
  return refused.length > 0 ? Result.fail(refused) : Result.succeed({ networks, monitors, sinks })
})

const idOf = (input: unknown): unknown =>
  typeof input === "object" && input !== null && "id" in input ? input.id : undefined

const storedModuleOf = ({ catalog }: CheckContext, id: string): string | undefined =>
  catalog.deleting.has(id) ? undefined : catalog.networks.get(id)?.definition.module

/** The module that a network names, if there is such a plugin: what its monitors say can be judged. */
const sourceOf = ({ plugins }: CheckContext, input: unknown): string | null =>
  typeof input === "object" &&
  input !== null &&
  "module" in input &&
  typeof input.module === "string" &&
  plugins.source(input.module) !== undefined
    ? input.module
    : null

/**
 * The stored monitors of a network whose module changes and that are not `put` as well, compiled for the new one: they must still fit. So must those
 * that did not compile before, which a change of the network may have mended.
 */
const recompileMonitors = (
  { catalog, plugins }: CheckContext,
  network: Pick<NetworkDefinition, "id" | "module">,
  put: ReadonlyArray<unknown>,
): { readonly fitting: ReadonlyArray<MonitorEntry>; readonly problems: ReadonlyArray<Problem> } => {
  const plugin = plugins.source(network.module)
  const fitting: Array<MonitorEntry> = []
  const problems: Array<Problem> = []
  const moved = catalog.networks.get(network.id)?.definition.module !== network.module
  for (const entry of plugin === undefined ? [] : catalog.monitorsOf(network.id)) {
    const { definition } = entry.stored
    if (put.includes(definition.id)) continue
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
