import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Cause, Clock, Context, Effect, Layer, Result } from "effect"
import type { Action, Requirements } from "../actions/action.ts"
import { Actions } from "../actions/actions.ts"
import type { DefinitionInvalid } from "../actions/definition-invalid.ts"
import { EventStore } from "../actions/event-store.ts"
import { under } from "../model/problem.ts"
import { Egress, type EgressPolicy, type EgressPolicyInvalid } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import { Secrets } from "../plugin/secrets.ts"
import type { Plugin } from "../plugin/sink.ts"
import { ACTIONS } from "../storage/events.ts"
import { StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import { actionsDefinition, actionsPlugin, checkActionsId, subscriptions, warnOfDeafActions } from "./actions-sink.ts"
import { checkBuffers } from "./check-buffers.ts"
import { checkDefinitions } from "./check-definitions.ts"
import { checkFixed } from "./check-fixed.ts"
import { DeadLetters } from "./dead-letters.ts"
import { defaultSettings, Engine, type EngineSettings } from "./engine.ts"
import { type Conflict, Refused } from "./error.ts"
import { Feed } from "./feed.ts"
import { FeedHub } from "./feed/hub.ts"
import { type HostSink, hostDefinition, hostPlugin, isHostSink } from "./host-sink.ts"
import { Resources } from "./resources.ts"
import { type SeedFile, Seeds } from "./seeds.ts"
import { sinkActivity } from "./views-of.ts"
import type { NetworkState, SinkState } from "./views.ts"

export interface Health {
  readonly networks: ReadonlyArray<{
    readonly id: string
    readonly state: NetworkState
    readonly error: string | null
    /** Sinks that are owed deliveries, as of a few seconds ago, and how long the oldest waits. */
    readonly owes: ReadonlyArray<{ readonly sink: string; readonly deliveries: number; readonly oldestSeconds: number }>
  }>
  readonly sinks: ReadonlyArray<{ readonly id: string; readonly state: SinkState; readonly error: string | null }>
  /** Why the database does not answer at present, or null. */
  readonly storage: string | null
}

/** What a runtime is made of. */
export interface RuntimeOptions<E, A extends Action = never, E2 = never, R2 = never> {
  readonly storage: Layer.Layer<Storage, E>
  /** Plugins of the host program. */
  readonly plugins?: ReadonlyArray<Plugin>
  /** Folders of plugins, loaded beside them. */
  readonly pluginDirectories?: ReadonlyArray<string | URL>
  /** Definitions in camelCase that are put at the start, in one transaction; what they do not name stays as stored. */
  readonly resources?: {
    readonly networks?: ReadonlyArray<object>
    readonly monitors?: ReadonlyArray<object>
    readonly sinks?: ReadonlyArray<object | HostSink>
  }
  /** Seed files, applied at the start before anything runs. */
  readonly seeds?: ReadonlyArray<SeedFile>
  /** Where sources and sinks may dial; public and loopback addresses unless set. */
  readonly egress?: EgressPolicy
  readonly settings?: Partial<EngineSettings>
  /**
   * Durable actions of the program: each runs once per event that it is subscribed to. As long as there are any, there is a
   * sink `actions`, which monitors name to be heard by them.
   */
  readonly actions?: ReadonlyArray<A>
  /** The database that the actions write; the runtime's own, without entities of the program, unless set. */
  readonly eventStore?: Layer.Layer<EventStore, E2, R2>
  /** No network runs before this succeeds; until then definitions can be read and changed. At once unless set. */
  readonly startAfter?: Effect.Effect<void>
}

/** The running engine. */
export class Blockwatcher extends Context.Service<
  Blockwatcher,
  {
    /** A short look at what runs: for health checks. Never fails. */
    readonly health: Effect.Effect<Health>
  }
>()("blockwatcher/Blockwatcher") {
  /**
   * A whole runtime: loads what is stored, applies `resources` and `seeds`, starts every network. Closing its scope
   * drains them. Several runtimes can live in one process.
   */
  static readonly layer = <E, A extends Action = never, E2 = never, R2 = never>(
    options: RuntimeOptions<E, A, E2, R2>,
  ): Layer.Layer<
    Blockwatcher | Resources | Seeds | Feed | DeadLetters | Actions | EventStore,
    E | E2 | EgressPolicyInvalid | DefinitionInvalid | Refused | Conflict | StorageError,
    Requirements<A> | Exclude<R2, Storage>
  > => {
    const settings = { ...defaultSettings, ...options.settings }
    const hosts = (options.resources?.sinks ?? []).filter(isHostSink)
    const subscribed = subscriptions(options.actions ?? [])
    const foundation = Layer.mergeAll(
      options.storage,
      Plugins.layer({
        plugins: [
          ...(subscribed === undefined ? [] : [actionsPlugin]),
          ...(options.plugins ?? []),
          ...hosts.map(hostPlugin),
        ],
        directories: options.pluginDirectories ?? [],
      }),
      Egress.layer(options.egress ?? { loopback: true, allow: [] }),
      Layer.provide(Secrets.layer, NodeFileSystem.layer),
    )
    const engine = Engine.layer(settings, subscribed).pipe(
      Layer.provideMerge(FeedHub.layer),
      Layer.provideMerge(foundation),
    )
    const services = Layer.mergeAll(Resources.layer, Seeds.layer, Feed.layer, DeadLetters.layer)
    const started = Layer.effect(Blockwatcher, start(options)).pipe(Layer.provideMerge(services), Layer.provide(engine))
    const actions = Actions.layer<A>({
      actions: options.actions ?? [],
      settings: {
        concurrency: settings.actionConcurrency,
        drainTimeoutMs: settings.drainTimeoutMs,
        retentionMs: settings.actionRetentionMs,
      },
    })
    const eventStore: Layer.Layer<EventStore, E2 | StorageError, R2 | Storage> = options.eventStore ?? noEntities
    const runtime = actions.pipe(
      // Given out, so that the program reaches its entities where they stand in the runtime's database.
      Layer.provideMerge(eventStore),
      // They begin when the networks have begun, and end before them.
      Layer.provideMerge(started),
      Layer.provide(foundation),
    )
    // Fresh, so that two runtimes in one program share nothing. That a program's event store needs nothing of the runtime
    // but its storage is not seen from here.
    return Layer.fresh(runtime) as Layer.Layer<
      Layer.Success<typeof runtime>,
      Layer.Error<typeof runtime>,
      Requirements<A> | Exclude<R2, Storage>
    >
  }
}

/** A program without entities prepares nothing, so that this cannot fail. */
const noEntities = EventStore.layerRuntime({ entities: [], discovery: { warnWhenNoEntities: false } }).pipe(
  Layer.catchTag("PrepareFailed", (failed) => Layer.effect(EventStore, Effect.die(failed))),
)

/** How long the database may take to answer a health check. */
const HEALTH_WAIT = "1 second"

const noAnswer = new StorageError({ operation: "pipeline", reason: "no answer within 1 s", retryable: true })

const start = Effect.fnUntraced(function* (
  options: Pick<RuntimeOptions<unknown, Action>, "resources" | "seeds" | "startAfter" | "actions">,
) {
  const engine = yield* Engine
  const storage = yield* Storage
  const plugins = yield* Plugins
  const { networks = [], monitors = [], sinks = [] } = options.resources ?? {}
  const subscribed = subscriptions(options.actions ?? [])
  const builtIn = subscribed === undefined ? [] : [actionsDefinition]
  const described = sinks.map((sink) => (isHostSink(sink) ? hostDefinition(sink) : sink))
  const set = { networks, monitors, sinks: [...described, ...builtIn] }
  yield* engine.exclusively(
    Effect.gen(function* () {
      if (subscribed !== undefined) yield* checkActionsId(engine.sinks)
      const checked = yield* checkDefinitions({ catalog: engine.catalog, sinks: engine.sinks, plugins }, set)
      if (Result.isSuccess(checked)) {
        yield* checkFixed(engine.catalog, plugins, storage, checked.success.networks)
        yield* checkBuffers(engine.catalog, engine.sinks, storage, checked.success.sinks)
        yield* engine.put(checked.success, [])
        // It may have been paused while no program with actions ran.
        if (subscribed !== undefined && engine.sinks.handle(ACTIONS).paused !== null) {
          yield* engine.pauseSink(ACTIONS, null)
        }
        return
      }
      const problems = checked.failure.flatMap(({ kind, index, problems: own }) => under(`${kind}s.${index}`, own))
      return yield* new Refused({ resource: "the set of resources", problems })
    }),
  )
  if (options.seeds !== undefined) yield* (yield* Seeds).apply(options.seeds)
  if (subscribed !== undefined) yield* warnOfDeafActions(engine.catalog, subscribed)
  yield* options.startAfter === undefined
    ? engine.exclusively(engine.start)
    : Effect.forkScoped(
        Effect.andThen(options.startAfter, engine.exclusively(engine.start)).pipe(
          Effect.tapCause((cause) =>
            Cause.hasInterruptsOnly(cause)
              ? Effect.void
              : Effect.logFatal("the networks were not started; restart the program", cause),
          ),
        ),
      )
  return Blockwatcher.of({
    health: Effect.gen(function* () {
      // A probe is answered in time, whatever the database does.
      const answer = yield* storage
        .pipeline("")
        .pipe(Effect.timeoutOrElse({ duration: HEALTH_WAIT, orElse: () => Effect.fail(noAnswer) }), Effect.result)
      const now = yield* Clock.currentTimeMillis
      return {
        sinks: engine.sinks.all().map(({ definition: { id } }) => ({ id, ...sinkActivity(engine.sinks.handle(id)) })),
        networks: [...engine.catalog.networks.keys()].map((id) => {
          const activity = engine.activity(id)
          // A network that waits for its first monitor is no reason to take the program out of service.
          const error = activity === undefined || activity.idle ? null : activity.error
          const owes = (activity?.debts ?? []).map(({ sink, deliveries, since }) => ({
            sink,
            deliveries,
            oldestSeconds: Math.max(0, now - since) / 1000,
          }))
          return { id, state: activity?.state ?? ("STARTING" as const), error, owes }
        }),
        storage: Result.isFailure(answer) ? answer.failure.message : null,
      }
    }),
  })
})
