import { Context, Effect, Fiber, identity, Layer, Logger, References, Schema, Scope, Stream } from "effect"
import {
  Actions,
  Blockwatcher,
  DeadLetters,
  type Delivery,
  EventStore,
  Feed,
  layerSqlite,
  Permanent,
  Resources,
  type SinkEvent,
  SinkPlugin,
  type SourcePlugin,
  Storage,
} from "../../core/index.ts"
import { Egress } from "../../core/plugin/egress.ts"
import evmRpc from "../../plugins/sources/evm-rpc/index.ts"
import { type Reaction, reactionOf } from "./faults.ts"
import { keepLedger, ledgerStore } from "./ledger.ts"
import { Life } from "./life.ts"
import type { Providers } from "./providers.ts"
import { type Content, readBody } from "./receivers.ts"
import {
  CHANGING,
  CHANGING_SINK,
  JOURNAL_DEPTH,
  monitorDefinition,
  NETWORK,
  networkDefinition,
  PROVIDER_JOURNAL_DEPTH,
  sinkDefinition,
  SINKS,
} from "./setup.ts"
import { simulatedStorage } from "./storage-layer.ts"
import type { World } from "./world.ts"

/** How long a runtime may take for a clean stop, in ms. */
const DRAIN_MS = 2_000

/** What a receiver answers that wants nothing more at all. */
const GONE: Reaction = { delayMs: 0, accepts: false, error: new Permanent({ reason: "simulated", gone: true }) }

/** So many times earlier than it asks for, a source of several nodes gives up a request: its timers are the machine's. */
const HASTE = { ofWrong: 100, ofWell: 10 }

/** The way out of a source whose nodes may hang: one that is well is waited for, however slow the machine is. */
const hasty = (egress: Egress["Service"], providers: Providers): Egress["Service"] => {
  const inHaste = ({ port }: URL, timeoutMs: number) =>
    timeoutMs / (providers.isWrong(Number(port)) ? HASTE.ofWrong : HASTE.ofWell)
  return {
    request: (request) => egress.request({ ...request, timeoutMs: inHaste(request.url, request.timeoutMs) }),
    openSocket: (request) => egress.openSocket({ ...request, timeoutMs: inHaste(request.url, request.timeoutMs) }),
  }
}

/** A source that reads nothing more once its runtime is dead, and tells nothing while it is frozen. */
const mortal = (plugin: SourcePlugin, life: Life, { providers }: World): SourcePlugin => ({
  ...plugin,
  make: (config) =>
    plugin.make(config).pipe(
      providers === null ? identity : Effect.updateService(Egress, (egress) => hasty(egress, providers)),
      Effect.map((source) => ({
        ...source,
        run: (run) => {
          providers?.runBegins(run.resume.anchors.map(({ primary }) => primary))
          return Effect.flatMap(Effect.raceFirst(source.run(run), Effect.as(life.died, null)), (outcome) =>
            outcome === null ? Effect.never : Effect.as(life.proceeds, outcome),
          )
        },
      })),
    ),
})

/** A delivery for a person who reads a trace. */
const wordsOf = ({ id, attempt, nonce }: Delivery, content: Content): string => {
  const words = content.kind === "retracted" ? [] : content.members.map((it) => `${it.monitor} ${it.block}:${it.index}`)
  return `${id.slice(0, 8)}${id.slice(64)} ${words.join(", ")} (attempt ${attempt}${nonce === null ? "" : ", replay"})`
}

/** Attempts of one delivery in one life, for what the seed decides about each. */
const attempt = (life: Life, world: World, sink: string) => {
  const receiver = world.receivers.get(sink)!
  /** Goes on only in the runtime that owns the network: another has no lease to send anything under. */
  const entitled = Effect.andThen(
    life.proceeds,
    Effect.suspend(() => (world.owner === life ? Effect.void : Effect.never)),
  )
  const pass = (point: string) => Effect.suspend(() => (world.points.pass(point, life), entitled))
  return Effect.fnUntraced(function* (event: SinkEvent, delivery: Delivery) {
    const { id, body, nonce } = delivery
    yield* entitled
    yield* pass("deliver:before")
    const isRetraction = event.type === "retracted"
    if (isRetraction) receiver.beginOrder()
    const content = readBody(body)
    if (content.kind !== "retracted" && nonce === null) world.checkCovered(receiver, content.members)
    const salt = `${world.seed} ${sink} ${id} ${life.number} ${delivery.attempt}`
    const { delayMs, accepts, error } = world.gone.has(sink)
      ? GONE
      : reactionOf(world.moods, receiver.setup, {
          salt,
          isDigest: content.kind === "digest" && content.members.length > 1,
        })
    if (delayMs > 0) yield* Effect.sleep(delayMs)
    yield* entitled
    if (world.isTraced) {
      const answer = accepts ? (error === null ? "accepts" : "accepts and denies") : `answers ${error!._tag} to`
      world.log(`${sink} ${answer} ${wordsOf(delivery, content)}`)
    }
    if (accepts) {
      const isLetter = content.kind !== "retracted" && content.members.some((member) => world.isLetter(sink, member.id))
      receiver.accept({ id, body, content, isReplay: nonce !== null || isLetter })
    }
    yield* pass("deliver:after")
    if (error === null) return
    // Whether it dies of this is not known here.
    if (isRetraction && !receiver.setup.isReliable) receiver.missedRetraction = true
    return yield* error
  })
}

const simulatedSink = (life: Life, world: World): SinkPlugin =>
  SinkPlugin.make({
    name: "simulated",
    config: Schema.Struct({ id: Schema.String, version: Schema.Number }),
    make: ({ id }) =>
      Effect.sync(() => {
        const deliver = attempt(life, world, id)
        return { deliver: world.mutant?.sink?.(deliver, id, world) ?? deliver, timeoutMs: 20_000 }
      }),
  })

const logger = (world: World, life: Life) =>
  Logger.make(({ message, cause }) => {
    world.log(`[${life.number}] ${String(message)}${cause.reasons.length === 0 ? "" : ` ${String(cause)}`}`)
  })

/** Starts a runtime over the world's database; null if it died on the way. */
export const startLife = (world: World): Effect.Effect<Life> =>
  Effect.gen(function* () {
    const life = new Life(world.lives.length + 1, (text) => world.log(text))
    world.lives.push(life)
    world.preferred = life
    world.log(`life ${life.number} starts`)
    const real = Context.get(
      yield* Layer.build(layerSqlite({ path: world.path })).pipe(Scope.provide(life.storageScope)),
      Storage,
    )
    life.storage = real
    const storage = { ...real, ...world.mutant?.storage?.(real, life, world) }
    const build = Layer.build(
      Blockwatcher.layer({
        storage: Layer.succeed(Storage, simulatedStorage(storage, life, world)),
        plugins: [mortal(evmRpc, life, world), simulatedSink(life, world)],
        ...(life.number > 1 ? {} : { resources: definitions(world) }),
        ...(world.hasLedger ? { actions: [keepLedger(world)], eventStore: ledgerStore } : {}),
        settings: { drainTimeoutMs: DRAIN_MS, journalDepth: 1024 },
      }),
    ).pipe(
      Scope.provide(life.scope),
      Effect.provide(Logger.layer([logger(world, life)])),
      Effect.provideService(References.MinimumLogLevel, world.isTraced ? "Debug" : "None"),
    )
    const context = yield* Effect.raceFirst(
      Effect.flatMap(Effect.forkDetach(build), Fiber.join),
      Effect.as(life.died, null),
    )
    if (context === null) return life
    life.parts = {
      resources: Context.get(context, Resources),
      feed: Context.get(context, Feed),
      letters: Context.get(context, DeadLetters),
      actions: Context.get(context, Actions),
      ledger: world.hasLedger ? Context.get(context as Context.Context<EventStore>, EventStore) : null,
    }
    yield* life.parts.feed.checkpoints(NETWORK).pipe(
      Stream.runForEach(({ cursor, updatedAt }) =>
        Effect.sync(() => {
          if (world.owner === life && !life.isOver) world.seeCheckpoint(cursor, updatedAt)
        }),
      ),
      Effect.ignore,
      Effect.forkDetach,
    )
    return life
  }).pipe(Effect.orDie)

const nodesOf = ({ nodes, providers, mutant }: World) => {
  const config = providers?.config ?? { urls: nodes.map(({ url }) => url) }
  return mutant?.nodes?.(config) ?? config
}

const definitions = (world: World) => ({
  networks: [networkDefinition(nodesOf(world), world.providers === null ? JOURNAL_DEPTH : PROVIDER_JOURNAL_DEPTH)],
  sinks: [...SINKS, CHANGING_SINK].map((sink) => sinkDefinition(sink)),
  monitors: [...world.monitors, CHANGING].map((monitor) => monitorDefinition(monitor)),
})
