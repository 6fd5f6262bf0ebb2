import { Context, Effect, Layer, Option, PubSub, type Scope, Stream } from "effect"
import { makeHolder } from "../storage/holder.ts"
import type { StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import type { Action, Requirements } from "./action.ts"
import type { DefinitionInvalid } from "./definition-invalid.ts"
import { type Emit, makeEmit } from "./emit.ts"
import { EventStore } from "./event-store.ts"
import { MatchStateUnavailable } from "./match-states.ts"
import { makeOperating, type Operating } from "./operate.ts"
import { makeRegistry } from "./registry.ts"
import { shownId } from "./runner/job.ts"
import { ActionMetrics } from "./runner/metrics.ts"
import { startRunner } from "./runner/runner.ts"
import { makeStore, RUNTIME } from "./store/store.ts"
import type { DeliveryChange, DeliveryState } from "./views.ts"

/** How actions are run. */
export interface ActionSettings {
  /** How many deliveries this process runs at once; 0: it leaves them to others. */
  readonly concurrency: number
  /** How long a stop lets runs go on, in ms. */
  readonly drainTimeoutMs: number
  /** How long events are kept whose deliveries are all over, in ms. */
  readonly retentionMs: number
}

export interface ActionsOptions<A extends Action> {
  readonly actions: ReadonlyArray<A>
  readonly settings: ActionSettings
}

const NO_ENTITIES = { entities: [], discovery: { warnWhenNoEntities: false } }

/** How many changes a slow reader of `changes` may be behind before it misses the oldest. */
const CHANGES = 1_024

/** Durable actions of the program: its own events, and the deliveries of all. */
export class Actions extends Context.Service<
  Actions,
  Operating & {
    /** Emits an event: it is stored when this succeeds, and reaches each action that subscribes to its type. */
    readonly emit: Emit
    /** Each change of a delivery's state that this process makes, from now on; a slow reader misses the oldest. */
    readonly changes: Stream.Stream<DeliveryChange>
  }
>()("blockwatcher/Actions") {
  /**
   * Runs the actions of a program until its scope closes. They write the database of the `EventStore` that is provided; the
   * runtime's own where none is.
   */
  static readonly layer = <A extends Action>(
    options: ActionsOptions<A>,
  ): Layer.Layer<Actions, StorageError | DefinitionInvalid, Storage | Requirements<A>> =>
    // What the actions require is taken from the context as it is.
    Layer.effect(Actions, make(options) as Effect.Effect<Actions["Service"], StorageError | DefinitionInvalid, any>)
}

const make = Effect.fnUntraced(function* ({
  actions,
  settings,
}: ActionsOptions<Action>): Effect.fn.Return<
  Actions["Service"],
  StorageError | DefinitionInvalid,
  Storage | Scope.Scope
> {
  const storage = yield* Storage
  const services = yield* Effect.context<never>()
  const registry = yield* makeRegistry(actions)
  const own = yield* Effect.serviceOption(EventStore)
  const runtime = Option.match(own, {
    onSome: (store) => (store.name === RUNTIME ? Effect.succeed(store.orm) : storage.orm(NO_ENTITIES)),
    onNone: () => storage.orm(NO_ENTITIES),
  })
  const tenantProperty = Option.match(own, { onSome: (store) => store.tenantProperty, onNone: () => "tenant" })
  const ofRuntime = yield* makeStore({
    name: RUNTIME,
    orm: yield* runtime,
    database: storage.database,
    tenantProperty,
  })
  const ofProgram = Option.isSome(own) && own.value.name !== RUNTIME ? [yield* makeStore(own.value)] : []
  const stores = [ofRuntime, ...ofProgram]
  const written = stores.at(-1)!

  const hub = yield* Effect.acquireRelease(PubSub.sliding<DeliveryChange>(CHANGES), PubSub.shutdown)
  const runner =
    actions.length === 0 || settings.concurrency === 0
      ? { wake: Effect.void }
      : yield* startRunner({
          stores,
          written,
          registry,
          services,
          holder: makeHolder(),
          ...settings,
          metrics: new ActionMetrics(services),
          subscribers: registry.subscribers,
          matches: {
            state: (matchId) =>
              Effect.mapError(
                storage.matchState(matchId),
                (error) => new MatchStateUnavailable({ reason: error.message }),
              ),
          },
          changed: ({ store, held, claimed }, state, code) =>
            Effect.asVoid(
              PubSub.publish(hub, {
                id: shownId(store.name, held.pk),
                store: store.name,
                action: claimed.action,
                event: claimed.event,
                state: state as DeliveryState,
                code,
              }),
            ),
        })
  yield* Effect.forkScoped(Stream.runForEach(storage.newEvents, () => runner.wake))
  return Actions.of({
    ...makeOperating(stores, written, registry, hub, runner.wake),
    emit: makeEmit(written, registry, runner.wake),
    changes: Stream.fromPubSub(hub),
  })
})
