import { Context, Effect, Exit, Fiber, Layer, Result, Scope, Semaphore } from "effect"
import { compileMonitor } from "./compile-monitor.ts"
import type { Egress } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import { type Owner, type ResourceKind, type SeedRecord, Storage, type StorageError } from "../storage/storage.ts"
import { Catalog } from "./catalog.ts"
import type { CheckedSet } from "./check-definitions.ts"
import { checkStored } from "./check-stored.ts"
import { Conflict, type NotFound, type Refused } from "./error.ts"
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
    /** Tries again a resource that is FAILED, as it is. */
    readonly retry: (kind: ResourceKind, id: string) => Effect.Effect<void>
    readonly deleteMonitor: (id: string, discard: boolean) => Effect.Effect<void, Conflict | StorageError>
    readonly deleteSink: (id: string, discard: boolean) => Effect.Effect<void, Conflict | StorageError>
    /** Drains the network and removes it with all its rows; not to be called within `exclusively`. */
    readonly deleteNetwork: (
      id: string,
      check: Effect.Effect<void, Conflict | NotFound>,
      discard: boolean,
    ) => Effect.Effect<void, Conflict | NotFound | StorageError>
    /** Starts the networks; until then changes are stored and nothing runs. */
    readonly start: Effect.Effect<void>
  }
>()("blockwatcher/Engine") {
  static readonly layer = (
    settings: EngineSettings,
  ): Layer.Layer<Engine, Refused | StorageError, Storage | Plugins | FeedHub | Egress | Secrets> =>
    Layer.effect(Engine, makeEngine(settings))
}

/** How long what still runs after the drain is waited for, in ms. */
const CLOSE_MS = 2_000

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
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function* () {
      yield* stopAll
      // Detached, so that what cannot be interrupted does not hold up the end of the program.
      const closing = yield* Effect.forkDetach(Scope.close(scope, exit))
      yield* Effect.timeoutOption(Fiber.await(closing), CLOSE_MS)
    }),
  )
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

  /** Runs a change while no pipeline of the networks runs: none mints or goes on with rows that it takes away. */
  const between = <A, E>(networks: ReadonlyArray<string>, change: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    networks.reduce((inner, network) => supervisors.get(network)?.supervisor.between(inner) ?? inner, change)

  /** Fails while rows are owed or dead letters kept, unless they are to be discarded. */
  const owesNothing = Effect.fnUntraced(function* (
    label: string,
    by: Parameters<Storage["Service"]["debts"]>[0],
    discard: boolean,
  ) {
    const { owed, dead } = yield* storage.debts(by)
    if (discard || owed + dead === 0) return
    const debts = [
      ...(owed > 0 ? [`owes ${owed} deliveries`] : []),
      ...(dead > 0 ? [`keeps ${dead} dead letters`] : []),
    ]
    const reason = `${label} still ${debts.join(" and ")}; delete it with discard: true to give them up`
    return yield* new Conflict({ reason })
  })

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
      // The same compilation goes on: what was recorded while this was stored is still so.
      catalog.monitors.set(
        id,
        before?.active === monitor.active ? { ...monitor, effectiveFrom: before.effectiveFrom } : monitor,
      )
      concerned.push(network)
    }
    yield* refresh(concerned)
  })

  const deleteMonitor = Effect.fnUntraced(function* (id: string, discard: boolean) {
    const network = catalog.monitors.get(id)?.stored.definition.network
    const label = `monitor "${id}"`
    if (network === undefined || !discard) {
      yield* owesNothing(label, { monitor: id }, discard)
      yield* storage.change({ deleteMonitors: [id] })
    } else {
      yield* between([network], storage.change({ deleteMonitors: [id], discard: [{ monitor: id }] }))
    }
    catalog.monitors.delete(id)
    if (network !== undefined) yield* refresh([network])
  })

  const deleteSink = Effect.fnUntraced(function* (id: string, discard: boolean) {
    // A batch that was matched before its monitor let go of the sink may be minted until the pipelines rest.
    const change = storage.change({ deleteSinks: [id], ...(discard ? { discard: [{ sink: id }] } : {}) })
    yield* between([...supervisors.keys()], Effect.andThen(owesNothing(`sink "${id}"`, { sink: id }, discard), change))
    yield* sinks.remove(id)
  })

  const stopNetwork = Effect.fnUntraced(function* (id: string) {
    const running = supervisors.get(id)
    if (running === undefined) return
    yield* running.supervisor.stop
    yield* Scope.close(running.scope, Exit.void)
    supervisors.delete(id)
  })

  const exclusively = <A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    // Only the wait for its turn can be interrupted: a change that is stored is also taken up.
    Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(writer.take(1)), Effect.ensuring(change, writer.release(1))),
    )

  const deleteNetwork = (id: string, check: Effect.Effect<void, Conflict | NotFound>, discard: boolean) => {
    const owes = owesNothing(`network "${id}"`, { network: id }, discard)
    const begin = exclusively(
      Effect.andThen(
        Effect.andThen(check, owes),
        Effect.sync(() => catalog.deleting.add(id)),
      ),
    )
    const remove = exclusively(
      owes.pipe(
        Effect.andThen(storage.change({ deleteNetworks: [id] })),
        Effect.andThen(Effect.sync(() => catalog.networks.delete(id))),
        Effect.ensuring(
          Effect.suspend(() => {
            catalog.deleting.delete(id)
            // A network that still exists runs on as if nothing had been asked.
            return refresh([id])
          }),
        ),
      ),
    )
    // Others make their changes while it drains.
    return Effect.uninterruptible(begin.pipe(Effect.andThen(stopNetwork(id)), Effect.andThen(remove), Effect.asVoid))
  }

  /** Tries again what is FAILED, for a reason outside that may be mended: a secret, a node. */
  const retry = Effect.fnUntraced(function* (kind: ResourceKind, id: string) {
    if (kind === "network") return yield* refresh([id])
    const sink = kind === "sink" ? sinks.get(id) : undefined
    if (sink === undefined || sinks.handle(id).error === null) return
    yield* sinks.put(sink)
    yield* refresh(networksOfSink(id))
  })

  return Engine.of({
    catalog,
    sinks,
    activity: (network) => supervisors.get(network)?.supervisor.activity(),
    exclusively,
    put,
    retry,
    deleteMonitor,
    deleteSink,
    deleteNetwork,
    start: Effect.gen(function* () {
      started = true
      yield* refresh(catalog.networks.keys())
    }),
  })
})
