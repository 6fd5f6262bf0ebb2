import { Context, Effect, Layer } from "effect"
import {
  Blockwatcher,
  DeadLetters,
  Feed,
  type HostSink,
  layerSqlite,
  Permanent,
  Storage,
} from "../../../../core/index.ts"
import { resourcesOf } from "../../../support/runtime.ts"
import { type ScriptedEvent, ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"

export const NETWORKS = ["n1", "n2", "n3"] as const
export const MONITORS = ["m1", "m2", "m3", "m4"] as const
/** Refuses what it is told for the first time, and takes what is sent again on request. */
export const REFUSING = "bad"
export const SINKS = ["s1", "s2", "s3", REFUSING] as const

/** Blocks that are there from the beginning. */
export const BLOCKS = 6

/** One block: a few events of two names, with values that no other block has. */
const block = (number: number): ReadonlyArray<ScriptedEvent> =>
  Array.from({ length: 1 + (number % 3) }, (_, i) => ({
    name: i === 1 ? "Other" : "Transfer",
    value: BigInt(10 * number + i),
  }))

/** What a sink holds that applies what it is told, as `network/monitor/value`. */
const holder = (id: string) => {
  const held = new Map<string, string>()
  const refused = new Set<string>()
  const sink: HostSink = {
    id,
    retry: { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 },
    deliver: (event, delivery) =>
      Effect.suspend((): Effect.Effect<void, Permanent> => {
        if (id === REFUSING && delivery.nonce === null && !(event.type === "retracted" && refused.has(delivery.id))) {
          refused.add(delivery.id)
          return Effect.fail(new Permanent({ reason: "no" }))
        }
        if (event.type === "match") {
          const { value } = event.event["args"] as { readonly value: string }
          held.set(event.id, `${event.network}/${event.monitor}/${value}`)
        } else if (event.type === "retracted") held.delete(event.match_id)
        return Effect.void
      }),
  }
  return { held, sink }
}

/** A database that takes a few steps for what changes make of it, so that changes meet on the way. */
const unhurried = (storage: Storage["Service"]): Storage["Service"] => {
  const { change, debts, invalidate, pause, pipeline } = storage
  const soon = Effect.forEach(Array(10), () => Effect.yieldNow, { discard: true })
  return {
    ...storage,
    change: (changes) => Effect.andThen(soon, change(changes)),
    debts: (by) => Effect.andThen(soon, debts(by)),
    invalidate: (owner, what) => Effect.andThen(soon, invalidate(owner, what)),
    pause: (owner, paused) => Effect.andThen(soon, pause(owner, paused)),
    pipeline: (network) => Effect.andThen(soon, pipeline(network)),
  }
}

/** Two networks (and room for a third), three monitors and four sinks; every feed is read in one batch. */
export const makeWorld = Effect.gen(function* () {
  const feed = new ScriptedFeed()
  feed.append(...Array.from({ length: BLOCKS }, (_, i) => block(i + 1)))
  const holders = SINKS.map(holder)
  const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
  const runtime = yield* Layer.build(
    Blockwatcher.layer({
      storage: Layer.succeed(Storage, unhurried(storage)),
      plugins: [scriptedSource(feed)],
      resources: {
        networks: ["n1", "n2"].map((id) => ({ id, module: "scripted", config: { range: 20 } })),
        sinks: holders.map(({ sink }) => sink),
        monitors: [
          { id: "m1", network: "n1", selector: { name: "Transfer" }, sinks: ["s1"] },
          { id: "m2", network: "n1", selector: { name: "Other" }, sinks: ["s1", "s2"] },
          { id: "m3", network: "n2", selector: { name: "Transfer" }, sinks: ["s2", "bad"] },
        ],
      },
    }),
  )
  const resources = resourcesOf(runtime)
  const letters = Context.get(runtime, DeadLetters)

  /** Whether nothing is left to do but what a pause keeps back. */
  const isQuiet = Effect.gen(function* () {
    for (const { id, state, inFlightEvents, error } of yield* resources.networks) {
      const row = yield* storage.pipeline(id)
      if (inFlightEvents > 0 || (yield* storage.invalidation(id)) !== null) return false
      if (state === "PAUSED") continue
      if (row === null || row.minted === null) {
        if (state !== "STARTING" || error !== "waits for an enabled monitor") return false
        continue
      }
      const { owed } = yield* storage.debts({ network: id })
      if (state !== "RUNNING" || row.checkpoint?.primary !== feed.blocks.length || owed > 0) return false
    }
    return true
  }).pipe(Effect.orDie)

  const quiet = waitUntil(
    "the world is quiet",
    Effect.gen(function* () {
      if (!(yield* isQuiet)) return false
      yield* Effect.sleep("2 millis")
      return yield* isQuiet
    }),
  )

  /** Lets every network go on, and every feed grow: what was changed shows in what is matched now. */
  const goOn = Effect.gen(function* () {
    for (const { id, state } of yield* resources.networks) if (state === "PAUSED") yield* resources.resumeNetwork(id)
    for (const { id, state } of yield* resources.sinks) if (state === "PAUSED") yield* resources.resumeSink(id)
    yield* quiet
    feed.append(...[1, 2, 3].map((i) => block(BLOCKS + i)))
    yield* quiet
  })

  const definitions = Effect.gen(function* () {
    const { networks, monitors, sinks } = yield* storage.resources
    const paused = yield* Effect.forEach(networks, ({ definition }) =>
      Effect.map(storage.pipeline(definition.id), (row) => `${definition.id} ${row?.paused === true}`),
    )
    return {
      networks: networks.map(({ definition }) => definition),
      monitors: monitors.map(({ definition }) => definition),
      sinks: sinks.map(({ definition }) => definition),
      paused,
      pausedSinks: sinks.filter((sink) => sink.paused !== null).map(({ definition }) => definition.id),
    }
  })

  /** What stands in rows, once everything has gone on. */
  const standing = Effect.gen(function* () {
    const feedOf = Context.get(runtime, Feed)
    const { items } = yield* feedOf.matches({ first: 1000, after: null })
    const networks = yield* Effect.forEach(yield* resources.networks, ({ id, state }) =>
      Effect.gen(function* () {
        const row = yield* storage.pipeline(id)
        const kept = yield* letters.list({ network: id, first: 200, after: null })
        return {
          id,
          state,
          checkpoint: row?.checkpoint ?? null,
          dead: kept.items
            .filter(({ node }) => node.replayable)
            .map(({ node }) => `${node.monitor} ${node.sink} ${node.cursor.primary}:${node.cursor.secondary}`)
            .toSorted(),
        }
      }),
    )
    return {
      networks,
      effectiveFrom: (yield* resources.monitors).map(({ id, effectiveFrom }) => ({ id, effectiveFrom })),
      matches: items
        .map(({ match: { network, monitor, event } }) => `${network}/${monitor}/${(event["args"] as any).value}`)
        .toSorted(),
      held: Object.fromEntries(holders.map(({ held, sink }) => [sink.id, [...held.values()].toSorted()])),
    }
  })

  return { resources, letters, quiet, goOn, definitions, standing }
})

export type World = Effect.Success<typeof makeWorld>
export type EndState = Effect.Success<World["standing"]> & {
  readonly definitions: Effect.Success<World["definitions"]>
}
