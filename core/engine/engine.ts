import { Context, Effect, Fiber, Layer, Scope, Semaphore } from "effect"
import type { SinkDefinition } from "../model/resource.ts"
import type { Egress } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import { type NotOwner, StaleResources, type StorageError } from "../storage/error.ts"
import type { EventTerms } from "../storage/events.ts"
import { type Invalidation, type Owner, Storage } from "../storage/storage.ts"
import type { ResourceChanges, ResourceKind, SeedRecord, Stored } from "../storage/stored.ts"
import { Catalog } from "./catalog.ts"
import type { CheckedSet } from "./check-definitions.ts"
import { type Deletions, makeDeletions } from "./deletions.ts"
import { warnOfDigests } from "./digest-warnings.ts"
import { Conflict } from "./error.ts"
import { FeedHub } from "./feed/hub.ts"
import { makeHolder } from "../storage/holder.ts"
import { maintain } from "./maintenance.ts"
import type { NetworkActivity } from "./network-condition.ts"
import { persistently } from "../pipeline/persistently.ts"
import { monitorEntry, takeUpResources } from "./resource-sync.ts"
import { makeSinkPauses } from "./sink-pauses.ts"
import { makeSinkRegistry, type SinkRegistry } from "./sink-registry.ts"
import { makeSupervisor, type Supervisor } from "./supervisor.ts"
import { makeSupervisors } from "./supervisors.ts"

/** Bounds of what is kept and of how long a stop may take. */
export interface EngineSettings {
  /** How far behind the checkpoint the journal reaches, in primaries (blocks). */
  readonly journalDepth: number
  /** Feed items that are kept for each network at least. */
  readonly feedRetention: number
  /** How long a drain may take, in ms. */
  readonly drainTimeoutMs: number
  /** How many deliveries to actions this process runs at once; 0: it leaves them to others. */
  readonly actionConcurrency: number
  /** How long the deliveries of matches to actions are kept when they are over, with their events, in ms. */
  readonly actionRetentionMs: number
}

export const defaultSettings: EngineSettings = {
  journalDepth: 1024,
  feedRetention: 100_000,
  drainTimeoutMs: 20_000,
  actionConcurrency: 16,
  actionRetentionMs: 604_800_000,
}

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
    /**
     * Runs a check and the change that rests on it without another change in between. When another process was faster,
     * its change is taken up and both run again.
     */
    readonly exclusively: <A, E, R>(
      change: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, StaleResources> | Conflict | StorageError, R>
    /** Stores a checked set, in one transaction, and takes it up. */
    readonly put: (
      set: CheckedSet,
      seeds: ReadonlyArray<SeedRecord>,
    ) => Effect.Effect<void, StaleResources | StorageError>
    /** Tries again a resource that is FAILED, as it is. */
    readonly retry: (kind: ResourceKind, id: string) => Effect.Effect<void>
    readonly deleteMonitor: Deletions["deleteMonitor"]
    readonly deleteSink: Deletions["deleteSink"]
    readonly deleteNetwork: Deletions["deleteNetwork"]
    /** Stores whether a sink rests, and why. To be called within `exclusively`. */
    readonly pauseSink: (id: string, paused: string | null) => Effect.Effect<void, StaleResources | StorageError>
    /** Stores whether a network rests. */
    readonly pauseNetwork: (id: string, paused: boolean) => Effect.Effect<void, Conflict | NotOwner | StorageError>
    /** Records what a network takes back. */
    readonly takeBack: (
      id: string,
      what: Pick<Invalidation, "from" | "cause">,
    ) => Effect.Effect<void, Conflict | NotOwner | StorageError>
    /** What runs a network here, or waits to. */
    readonly supervisor: (network: string) => Effect.Effect<Supervisor, Conflict>
    /** No dead letter is replayed any more: the process is about to stop. */
    readonly endReplays: Effect.Effect<void>
    /** Starts the networks; until then changes are stored and nothing runs. */
    readonly start: Effect.Effect<void>
  }
>()("blockwatcher/Engine") {
  static readonly layer = (
    settings: EngineSettings,
    /** The names of the actions that each monitor's matches go to; undefined in a program without actions. */
    actions?: EventTerms["actions"],
  ): Layer.Layer<Engine, StorageError, Storage | Plugins | FeedHub | Egress | Secrets> =>
    Layer.effect(Engine, makeEngine(settings, actions))
}

/** How often a change is tried again because another process was faster. */
const STALE_TRIES = 5

/** How often the database is asked whether another process changed a resource. */
const SYNC_EVERY = "1 second"

/** How long what still runs after the drain is waited for, in ms. */
const CLOSE_MS = 2_000

const makeEngine = Effect.fnUntraced(function* (settings: EngineSettings, actions: EventTerms["actions"] | undefined) {
  const storage = yield* Storage
  const plugins = yield* Plugins
  const hub = yield* FeedHub
  const context = yield* Effect.context<Egress | Secrets>()
  // What runs lives in a scope of its own: everything in it outlives the drain, whenever it was added.
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function* () {
      // Detached, so that what cannot be interrupted does not hold up the end of the program.
      const closing = yield* Effect.forkDetach(Scope.close(scope, exit))
      yield* Effect.timeoutOption(Fiber.await(closing), CLOSE_MS)
    }),
  )
  const writer = yield* Semaphore.make(1)
  const catalog = new Catalog()
  const sinks = yield* makeSinkRegistry(plugins).pipe(Scope.provide(scope))
  const holder = makeHolder()

  const stored = yield* storage.resources
  for (const sink of stored.sinks) {
    yield* sinks.put(sink)
    sinks.handle(sink.definition.id).pause(sink.paused)
  }
  for (const network of stored.networks) catalog.networks.set(network.definition.id, network)
  for (const monitor of stored.monitors) {
    catalog.monitors.set(monitor.definition.id, monitorEntry(catalog, plugins, monitor))
  }
  yield* warnOfDigests(catalog, sinks, () => true)
  /** The version of the resources that the catalog and the sinks show. */
  let version = stored.version

  const change = (changes: ResourceChanges) =>
    storage.change({ ...changes, basedOn: version }).pipe(
      Effect.tap((next) =>
        Effect.sync(() => {
          version = next
        }),
      ),
    )

  const journalDepthOf = (network: string): number =>
    catalog.networks.get(network)?.definition.journalDepth ?? settings.journalDepth

  /** Where the networks' monitors took effect, as their owners recorded it. */
  const readEffectiveFrom = Effect.fnUntraced(
    function* (isOf: (network: string) => boolean) {
      const { monitors } = yield* storage.resources
      for (const { definition, matchRevision, effectiveFrom } of monitors) {
        const entry = catalog.monitors.get(definition.id)
        if (isOf(definition.network) && entry?.stored.matchRevision === matchRevision) {
          entry.effectiveFrom = effectiveFrom
        }
      }
    },
    Effect.catchTag("StorageError", (error) => {
      // A definition that cannot be read stops no network that has nothing to do with it: what is known here has to do.
      return error.retryable
        ? Effect.fail(error)
        : Effect.logError(`where monitors took effect is not read anew: ${error.message}`)
    }),
  )

  const supervisors = makeSupervisors(catalog, scope, (network, own) =>
    makeSupervisor({
      network,
      holder,
      catalog,
      sinks,
      plugins,
      storage,
      hub,
      ...(actions === undefined ? {} : { events: { actions } }),
      drainTimeoutMs: settings.drainTimeoutMs,
      journalDepth: () => journalDepthOf(network),
      onClaimed: readEffectiveFrom((id) => id === network),
      onGone: (sink, reason) => pauses.gone(sink, reason),
      maintain: (owner: Owner) =>
        maintain(storage, owner, () => ({
          journalDepth: journalDepthOf(network),
          feedRetention: settings.feedRetention,
          actionRetention: settings.actionRetentionMs,
        })),
    }).pipe(Scope.provide(own), Effect.provideContext(context)),
  )
  const { refresh, between, isHeldByOther } = supervisors
  yield* Effect.addFinalizer(() => supervisors.stopAll)

  /**
   * The networks whose pipelines are opened again with a sink's new definition: a worker serves one kind of buffer. Any may
   * have rows of it, or be about to mint some.
   */
  const reopenedBy = Effect.fnUntraced(function* ({ definition: { id, buffer } }: Stored<SinkDefinition>) {
    const before = sinks.get(id)?.definition.buffer
    if (before !== undefined) return before === buffer ? [] : supervisors.networks()
    // Rows may be owed to one that is made again.
    return yield* Effect.filter(supervisors.networks(), (network) =>
      Effect.map(storage.oldestOwed(network, id), (since) => since !== null),
    )
  })

  const put = Effect.fnUntraced(function* (set: CheckedSet, seeds: ReadonlyArray<SeedRecord>) {
    if (set.networks.length + set.sinks.length + set.monitors.length + seeds.length === 0) return
    const reopened = yield* Effect.forEach(set.sinks, reopenedBy)
    /** Monitors that were off: a batch of before, whose mint is under way, says nothing of where they take effect. */
    const anew = set.monitors.flatMap(({ stored: { definition } }) =>
      catalog.monitors.get(definition.id)?.stored.definition.enabled === false ? [definition.network] : [],
    )
    const take = Effect.gen(function* () {
      yield* change({
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
      for (const [i, sink] of set.sinks.entries()) {
        // Built before: that may take long, and nothing is sent in between.
        const swapIn = yield* sinks.build(sink)
        yield* between(reopened[i]!, swapIn)
        concerned.push(...catalog.networksOfSink(sink.definition.id))
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
      return concerned
    })
    const concerned = yield* [...new Set(anew)].reduce(
      (inner, network) => supervisors.get(network)?.beginAnew(inner) ?? inner,
      take,
    )
    const written = new Set([
      ...set.sinks.map(({ definition }) => definition.id),
      ...set.monitors.flatMap(({ stored: monitor }) => monitor.definition.sinks),
    ])
    yield* warnOfDigests(catalog, sinks, (sink) => written.has(sink))
    yield* refresh(concerned)
  })

  /** Takes up what another process changed. */
  const reload = Effect.gen(function* () {
    const present = yield* storage.resources
    if (present.version === version) return
    const putSink = (sink: Stored<SinkDefinition>) =>
      Effect.flatMap(sinks.build(sink), (swapIn) =>
        Effect.flatMap(reopenedBy(sink), (networks) => between(networks, swapIn)),
      )
    const { concerned, gone } = yield* takeUpResources(present, { catalog, sinks, plugins, putSink, pauses })
    for (const id of gone.networks) {
      yield* supervisors.stop(id, "leave")
      catalog.networks.delete(id)
    }
    yield* refresh(concerned)
    let reached = present.version
    for (const id of gone.sinks) {
      // What was minted here since it was deleted there would be owed to nobody. It may have been made again since.
      const discard = Effect.suspend(() => storage.change({ basedOn: reached, discard: [{ sink: id }] }))
      reached = yield* between(supervisors.networks(), discard)
      yield* sinks.remove(id)
    }
    version = reached
    yield* Effect.logInfo("took up what another process changed in networks, monitors or sinks")
  })

  /** Runs a change again on top of what another process changed meanwhile. */
  const onPresent = <A, E, R>(
    change: Effect.Effect<A, E, R>,
    tries = STALE_TRIES,
  ): Effect.Effect<A, Exclude<E, StaleResources> | Conflict | StorageError, R> =>
    change.pipe(
      Effect.catch((error): Effect.Effect<A, Exclude<E, StaleResources> | Conflict | StorageError, R> => {
        if (!(error instanceof StaleResources)) return Effect.fail(error as Exclude<E, StaleResources>)
        if (tries === 0) return Effect.fail(new Conflict({ reason: error.message }))
        return onPresent(Effect.andThen(reload, change), tries - 1)
      }),
    )

  const exclusively = <A, E, R>(change: Effect.Effect<A, E, R>) =>
    // Only the wait for its turn can be interrupted: a change that is stored is also taken up.
    Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(writer.take(1)), Effect.ensuring(onPresent(change), writer.release(1))),
    )

  const pauses = makeSinkPauses(sinks, (id, paused) => change({ pauseSinks: [{ id, paused }] }), exclusively, scope)

  const deletions = makeDeletions({
    storage,
    catalog,
    sinks,
    supervisors,
    change,
    exclusively,
    inTurn: writer.withPermits(1),
  })

  /** Tries again what is FAILED, for a reason outside that may be mended: a secret, a node. */
  const retry = Effect.fnUntraced(function* (kind: ResourceKind, id: string) {
    if (kind === "network") return yield* refresh([id])
    const sink = kind === "sink" ? sinks.get(id) : undefined
    if (sink === undefined || sinks.handle(id).error === null) return
    yield* sinks.put(sink)
    yield* refresh(catalog.networksOfSink(id))
  })

  const follow = Effect.sleep(SYNC_EVERY).pipe(
    Effect.andThen(storage.resourcesVersion),
    Effect.flatMap((present) => (present === version ? Effect.void : exclusively(reload))),
    // Where monitors take effect is their owner's to record, and no version tells of it.
    Effect.andThen(
      Effect.suspend(() =>
        supervisors.networks().some(isHeldByOther) ? readEffectiveFrom(isHeldByOther) : Effect.void,
      ),
    ),
    persistently("take up what other processes changed"),
  )
  yield* Effect.forkIn(follow, scope)

  return Engine.of({
    catalog,
    sinks,
    activity: (network) => supervisors.get(network)?.activity(),
    exclusively,
    put,
    retry,
    ...deletions,
    pauseSink: (id, paused) => Effect.andThen(pauses.set(id, paused), refresh(catalog.networksOfSink(id))),
    pauseNetwork: (id, paused) => Effect.flatMap(supervisors.running(id), (supervisor) => supervisor.pause(paused)),
    takeBack: (id, what) => Effect.flatMap(supervisors.running(id), (supervisor) => supervisor.takeBack(what)),
    supervisor: supervisors.running,
    endReplays: supervisors.endReplays,
    start: supervisors.start,
  })
})
