import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Cause, Clock, Context, Effect, Layer, Result } from "effect"
import { under } from "../model/problem.ts"
import { Egress, type EgressPolicy, type EgressPolicyInvalid } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import { Secrets } from "../plugin/secrets.ts"
import type { Plugin } from "../plugin/sink.ts"
import { ACTIONS } from "../storage/events.ts"
import { StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import {
  actionsDefinition,
  actionsPlugin,
  checkActionsId,
  type SubscribedAction,
  subscriptions,
  warnOfDeafActions,
} from "./actions-sink.ts"
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
export interface RuntimeOptions<E> {
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
  /** The program's actions. As long as there are any, there is a sink `actions`, which monitors name to be heard by them. */
  readonly actions?: ReadonlyArray<SubscribedAction>
  /** Seed files, applied at the start before anything runs. */
  readonly seeds?: ReadonlyArray<SeedFile>
  /** Where sources and sinks may dial; public and loopback addresses unless set. */
  readonly egress?: EgressPolicy
  readonly settings?: Partial<EngineSettings>
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
  static readonly layer = <E>(
    options: RuntimeOptions<E>,
  ): Layer.Layer<
    Blockwatcher | Resources | Seeds | Feed | DeadLetters,
    E | EgressPolicyInvalid | Refused | Conflict | StorageError
  > => {
    const hosts = (options.resources?.sinks ?? []).filter(isHostSink)
    const actions = subscriptions(options.actions ?? [])
    const foundation = Layer.mergeAll(
      options.storage,
      Plugins.layer({
        plugins: [
          ...(actions === undefined ? [] : [actionsPlugin]),
          ...(options.plugins ?? []),
          ...hosts.map(hostPlugin),
        ],
        directories: options.pluginDirectories ?? [],
      }),
      Egress.layer(options.egress ?? { loopback: true, allow: [] }),
      Layer.provide(Secrets.layer, NodeFileSystem.layer),
    )
    const engine = Engine.layer({ ...defaultSettings, ...options.settings }, actions).pipe(
      Layer.provideMerge(FeedHub.layer),
      Layer.provideMerge(foundation),
    )
    const services = Layer.mergeAll(Resources.layer, Seeds.layer, Feed.layer, DeadLetters.layer)
    const runtime = Layer.effect(Blockwatcher, start(options)).pipe(Layer.provideMerge(services), Layer.provide(engine))
    // Fresh, so that two runtimes in one program share nothing.
    return Layer.fresh(runtime)
  }
}

/** How long the database may take to answer a health check. */
const HEALTH_WAIT = "1 second"

const noAnswer = new StorageError({ operation: "pipeline", reason: "no answer within 1 s", retryable: true })

const start = Effect.fnUntraced(function* (options: RuntimeOptions<unknown>) {
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
