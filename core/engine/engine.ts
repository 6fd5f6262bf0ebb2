import { Context, Effect, Exit, Layer, Result, Scope, Semaphore } from "effect"
import { compileMonitor } from "./compile-monitor.ts"
import type { Egress } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import { type Owner, type ResourceChanges, type SeedRecord, Storage, type StorageError } from "../storage/storage.ts"
import { Catalog } from "./catalog.ts"
import type { CheckedSet } from "./check-definitions.ts"
import { checkStored } from "./check-stored.ts"
import type { Refused } from "./error.ts"
import { FeedHub } from "./feed/hub.ts"
import { maintain } from "./maintenance.ts"
import { makeSinkRegistry, type SinkRegistry } from "./sink-registry.ts"
import { makeSupervisor, type NetworkActivity, type Supervisor } from "./supervisor.ts"

/** Bounds of what is kept and of how long a stop may take. */
export interface EngineSettings {
  /** How far behind the checkpoint the journal reaches, in primaries (blocks). */
  readonly journalDepth: number
  /** Feed items that are kept for each network at least. */
  readonly feedRetention: number
  /** How long a drain may take, in ms. */
  readonly drainTimeoutMs: number
}

export const defaultSettings: EngineSettings = { journalDepth: 1024, feedRetention: 100_000, drainTimeoutMs: 20_000 }

/**
 * What runs in this process: definitions, sinks, and one supervisor a network. Changes are made by one writer at a
 * time: stored first, then taken up here, then queued at the supervisors that they concern.
 */
export class Engine extends Context.Service<
  Engine,
  {
    readonly catalog: Catalog
    readonly sinks: SinkRegistry
    readonly activity: (network: string) => NetworkActivity | undefined
    /** Runs a check and the change that rests on it without another change in between. */
    readonly exclusively: <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Stores a checked set, in one transaction, and takes it up. */
    readonly put: (set: CheckedSet, seeds: ReadonlyArray<SeedRecord>) => Effect.Effect<void, StorageError>
    readonly deleteMonitor: (id: string, discard: boolean) => Effect.Effect<void, StorageError>
    readonly deleteSink: (id: string, discard: boolean) => Effect.Effect<void, StorageError>
    readonly deleteNetwork: (id: string) => Effect.Effect<void, StorageError>
    /** Starts the networks; until then changes are stored and nothing runs. */
    readonly start: Effect.Effect<void>
  }
>()("blockwatcher/Engine") {
  static readonly layer = (
    settings: EngineSettings,
  ): Layer.Layer<Engine, Refused | StorageError, Storage | Plugins | FeedHub | Egress | Secrets> =>
    Layer.effect(Engine, makeEngine(settings))
}

const makeEngine = Effect.fnUntraced(function* (settings: EngineSettings) {
  const storage = yield* Storage
  const plugins = yield* Plugins
  const hub = yield* FeedHub
  const context = yield* Effect.context<Egress | Secrets>()
  // What runs lives in a scope of its own: everything in it outlives the drain, whenever it was added.
  const scope = yield* Scope.make()
  const supervisors = new Map<string, { readonly supervisor: Supervisor; readonly scope: Scope.Closeable }>()
  const stopAll = Effect.suspend(() =>
    Effect.forEach(supervisors.values(), ({ supervisor }) => supervisor.stop, {
      concurrency: "unbounded",
      discard: true,
    }),
  )
  yield* Effect.addFinalizer((exit) => Effect.ensuring(stopAll, Scope.close(scope, exit)))
  const writer = yield* Semaphore.make(1)
  const catalog = new Catalog()
  const sinks = yield* makeSinkRegistry(plugins).pipe(Scope.provide(scope))
  let started = false

  const stored = yield* storage.resources
  yield* checkStored(stored)
  for (const sink of stored.sinks) yield* sinks.put(sink)
  for (const network of stored.networks) catalog.networks.set(network.definition.id, network)
  for (const monitor of stored.monitors) {
    const { definition, effectiveFrom } = monitor
    const module = catalog.networks.get(definition.network)?.definition.module
    const plugin = module === undefined ? undefined : plugins.source(module)
    const active =
      plugin === undefined
        ? Result.fail([{ path: "network", message: `no source plugin is named "${module}"` }])
        : compileMonitor(plugin, definition)
    catalog.monitors.set(definition.id, { stored: monitor, active, effectiveFrom, error: null })
  }

  const startNetwork = Effect.fnUntraced(function* (network: string) {
    const own = yield* Scope.fork(scope)
    const supervisor = yield* makeSupervisor({
      network,
      catalog,
      sinks,
      plugins,
      storage,
      hub,
      drainTimeoutMs: settings.drainTimeoutMs,
      maintain: (owner: Owner) => maintain(storage, owner, settings),
    }).pipe(Scope.provide(own), Effect.provideContext(context))
    supervisors.set(network, { supervisor, scope: own })
  })

  const refresh = Effect.fnUntraced(function* (networks: Iterable<string>) {
    if (!started) return
    for (const network of new Set(networks)) {
      const running = supervisors.get(network)
      if (running !== undefined) yield* running.supervisor.refresh
      else if (catalog.networks.has(network)) yield* startNetwork(network)
    }
  })

  const networksOfSink = (sink: string): ReadonlyArray<string> =>
    [...catalog.monitors.values()]
      .filter(({ stored: { definition } }) => definition.sinks.includes(sink))
      .map(({ stored: { definition } }) => definition.network)

  /** Stores a change while no pipeline of the networks runs, so that none goes on with rows that it takes away. */
  const changeBetween = (
    networks: ReadonlyArray<string>,
    changes: ResourceChanges,
  ): Effect.Effect<void, StorageError> => {
    const [first, ...rest] = networks
    const running = first === undefined ? undefined : supervisors.get(first)
    if (first === undefined) return storage.change(changes)
    const inner = changeBetween(rest, changes)
    return running === undefined ? inner : running.supervisor.between(inner)
  }

  const put = Effect.fnUntraced(function* (set: CheckedSet, seeds: ReadonlyArray<SeedRecord>) {
    yield* storage.change({
      putNetworks: set.networks,
      putSinks: set.sinks,
      putMonitors: set.monitors.map(({ stored: monitor }) => monitor),
      seeds,
    })
    const concerned: Array<string> = []
    for (const network of set.networks) {
      catalog.networks.set(network.definition.id, network)
      concerned.push(network.definition.id)
    }
    for (const sink of set.sinks) {
      yield* sinks.put(sink)
      concerned.push(...networksOfSink(sink.definition.id))
    }
    for (const monitor of set.monitors) {
      const { id, network } = monitor.stored.definition
      const before = catalog.monitors.get(id)
      if (before !== undefined) concerned.push(before.stored.definition.network)
      catalog.monitors.set(id, monitor)
      concerned.push(network)
    }
    yield* refresh(concerned)
  })

  const deleteMonitor = Effect.fnUntraced(function* (id: string, discard: boolean) {
    const network = catalog.monitors.get(id)?.stored.definition.network
    yield* discard && network !== undefined
      ? changeBetween([network], { deleteMonitors: [id], discard: [{ monitor: id }] })
      : storage.change({ deleteMonitors: [id] })
    catalog.monitors.delete(id)
    if (network !== undefined) yield* refresh([network])
  })

  const deleteSink = Effect.fnUntraced(function* (id: string, discard: boolean) {
    yield* discard
      ? changeBetween([...supervisors.keys()], { deleteSinks: [id], discard: [{ sink: id }] })
      : storage.change({ deleteSinks: [id] })
    yield* sinks.remove(id)
  })

  const deleteNetwork = Effect.fnUntraced(function* (id: string) {
    const running = supervisors.get(id)
    if (running !== undefined) {
      yield* running.supervisor.stop
      yield* Scope.close(running.scope, Exit.void)
      supervisors.delete(id)
    }
    const removed = yield* Effect.exit(storage.change({ deleteNetworks: [id] }))
    if (Exit.isFailure(removed)) {
      // The network still exists: it runs on as if nothing had been asked.
      yield* refresh([id])
      return yield* removed
    }
    catalog.networks.delete(id)
  })

  return Engine.of({
    catalog,
    sinks,
    activity: (network) => supervisors.get(network)?.supervisor.activity(),
    exclusively: writer.withPermit,
    put,
    deleteMonitor,
    deleteSink,
    deleteNetwork,
    start: Effect.gen(function* () {
      started = true
      yield* refresh(catalog.networks.keys())
    }),
  })
})
