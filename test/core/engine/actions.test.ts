import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import {
  Action,
  Blockwatcher,
  DeadLetters,
  layerSqlite,
  Match,
  Refused,
  type RuntimeOptions,
  Storage,
} from "../../../core/index.ts"
import { ActionDeliveryEntity, EventEntity } from "../../../core/storage/entities/events.ts"
import { networkNow, resourcesOf, type Runtime } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers, recorder, sourceThatRuns, transfer, waitForNetwork } from "./faults/support.ts"
import { lettersOf, waitForEnd } from "./taking-back/support.ts"

type Options = Omit<RuntimeOptions<never, Action<never, never>>, "storage">

interface Row {
  readonly id: string
  readonly kind: string
  readonly payload: string
  readonly actions: string | null
}

/** A database in memory that outlives the runtimes over it, and what of it a program with actions looks at. */
const database = Effect.gen(function* () {
  const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
  const orm = yield* storage.orm({ entities: [EventEntity, ActionDeliveryEntity] }).pipe(Effect.orDie)
  /** Each event with the actions that it goes to: `3 → credit` by the value of its match, `-3 → credit` if it is taken back. */
  const told = Effect.promise(async () => {
    const em = orm.em.fork()
    const rows: ReadonlyArray<Row> = await em.getConnection().execute(
      `select m.payload, e.kind, e.id, (select group_concat(action, ' ') from (
        select action from blockwatcher_action_deliveries d where d.event_seq = e.seq order by d.pk)) as actions
      from blockwatcher_events e join matches m on m.pk = e.match_pk order by e.seq`,
    )
    return rows.map(({ payload, kind, id, actions }) => {
      const { event } = JSON.parse(payload)
      const life = /-(\d+)(-r)?$/.exec(id)?.[1]
      const what = `${kind === "match" ? "" : "-"}${event.args.value}${life === undefined ? "" : ` (${life})`}`
      return { what, text: `${what} → ${actions ?? "nobody"}`, id }
    })
  })
  return {
    storage,
    told,
    texts: Effect.map(told, (events) => events.map(({ text }) => text)),
    execute: (statement: string) => Effect.promise(() => orm.em.getConnection().execute(statement)),
    start: (options: Options) =>
      Layer.build(Blockwatcher.layer({ storage: Layer.succeed(Storage, storage), ...options })),
  }
})

const all = Match.of("all", Schema.Unknown)
const credit = Action.make({ name: "credit", on: all, run: () => Effect.void })
const notify = Action.make({ name: "notify", on: [all, Match.of("other", Schema.Unknown)], run: () => Effect.void })

/** What comes to the actions is looked at as it is: none is run. */
const settings = { actionConcurrency: 0 }

/** The network `test` with the monitor `all`, whose matches go to actions. */
const watching = (feed: ScriptedFeed, over: object = {}, sinks: ReadonlyArray<string> = ["actions"]): Options => ({
  plugins: [scriptedSource(feed)],
  actions: [credit, notify],
  settings,
  resources: {
    networks: [{ id: "test", module: "scripted", config: {} }],
    monitors: [allTransfers(sinks, over)],
  },
})

const sinkNow = (runtime: Runtime, id: string) =>
  Effect.map(resourcesOf(runtime).sinks, (sinks) => sinks.find((sink) => sink.id === id)).pipe(Effect.orDie)

describe("matches for a program's actions", () => {
  it.live("are events beside the deliveries of other sinks; forks take them back, and bring them again", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      const blocks = [1, 2, 3].map((n) => [transfer(n)])
      feed.append(...blocks)
      const { sink, values } = recorder("mine")
      const { resources, ...options } = watching(feed, {}, ["actions", "mine"])
      const runtime = yield* db.start({ ...options, resources: { ...resources, sinks: [sink] } })
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(yield* db.texts, ["1 → credit notify", "2 → credit notify", "3 → credit notify"])
      assert.deepStrictEqual(values, [1, 2, 3])
      assert.deepInclude(yield* networkNow(runtime, "test"), {
        state: "RUNNING",
        inFlightEvents: 0,
        deadLetterCount: 0,
      })
      assert.deepInclude(yield* sinkNow(runtime, "actions"), { module: "actions", state: "RUNNING", error: null })
      feed.fork(2, "x", [transfer(30)], [])
      yield* waitForEnd(runtime, 4)
      feed.fork(2, "", ...blocks.slice(2), [], [])
      yield* waitForEnd(runtime, 5)
      assert.deepStrictEqual((yield* db.texts).slice(3), [
        "-3 → credit notify",
        "30 → credit notify",
        "-30 → credit notify",
        "3 (2) → credit notify",
      ])
      const events = yield* db.told
      const third = events[2]!.id
      assert.strictEqual(events.at(-1)!.id, `${third}-2`)
      assert.deepStrictEqual(yield* db.storage.matchState(third), { canonical: true, life: 2 })
      assert.deepStrictEqual(yield* db.storage.matchState(events[4]!.id), { canonical: false, life: 1 })
    }),
  )

  it.live("stand with their events or not at all", () =>
    Effect.gen(function* () {
      const db = yield* database
      yield* db.execute(
        `create trigger broken before insert on blockwatcher_action_deliveries begin select raise(abort, 'broken'); end`,
      )
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const runtime = yield* db.start(watching(feed))
      yield* waitForNetwork(runtime, "the error shows", ({ error }) => error?.includes("broken") === true)
      assert.deepStrictEqual(yield* db.execute("select * from matches"), [])
      assert.deepStrictEqual(yield* db.texts, [])
      yield* db.execute("drop trigger broken")
      yield* waitForEnd(runtime, 2)
      assert.deepStrictEqual(yield* db.texts, ["1 → credit notify", "2 → credit notify"])
    }),
  )

  it.live("that are found late are told to them", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2)])
      const plugin = sourceThatRuns(feed, (script, given) =>
        script({
          ...given,
          emit: (batch) =>
            Effect.andThen(given.emit({ ...batch, events: batch.events.slice(0, -1) }), given.late(batch)),
        }),
      )
      yield* db.start({ ...watching(feed), plugins: [plugin] })
      yield* waitUntil(
        "both are told",
        Effect.map(db.told, ({ length }) => length === 2),
      )
      assert.deepStrictEqual(yield* db.texts, ["1 → credit notify", "2 → credit notify"])
    }),
  )

  it.live("are told one by one when a gate emits them", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      const gate = { type: "threshold", count: 2, windowMs: 3_600_000 }
      const runtime = yield* db.start(watching(feed, { gate }))
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(yield* db.texts, ["1 → credit notify", "2 → credit notify"])
    }),
  )

  it.live("whose predicate failed are dead letters, which a replay tells to them", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const runtime = yield* db.start(watching(feed, { predicate: "args.value / (args.value - 1) > 0" }))
      yield* waitForEnd(runtime, 2)
      assert.deepStrictEqual(yield* db.texts, ["2 → credit notify"])
      const [letter] = yield* lettersOf(runtime)
      assert.deepInclude(letter, { sink: "actions", attempts: 0, replayable: true })
      assert.deepStrictEqual(yield* Context.get(runtime, DeadLetters).replay(letter!.id), {
        delivered: true,
        deadLetter: null,
      })
      assert.deepStrictEqual((yield* db.texts).slice(1), ["1 → credit notify"])
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
    }),
  )

  it.live("wait, visibly, while the program has no actions, and are told when it has", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      yield* Effect.scoped(Effect.flatMap(db.start(watching(feed)), (runtime) => waitForEnd(runtime, 1)))
      feed.append([transfer(2)])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* db.start({ plugins: [scriptedSource(feed)] })
          yield* waitForNetwork(runtime, "it waits", ({ error }) => error !== null)
          assert.include((yield* networkNow(runtime, "test")).error, "waits for sink actions")
          assert.strictEqual((yield* sinkNow(runtime, "actions"))!.state, "FAILED")
          // What is paused meanwhile is not paused for the actions that come back.
          yield* resourcesOf(runtime).pauseSink("actions")
        }),
      )
      // A monitor hears nothing of what was stored for a sink that could not be.
      const owner = yield* db.storage.claim("test", { holder: "it", ms: 15_000, isGone: () => true })
      yield* db.storage.invalidate(owner, { from: { primary: 0, secondary: 0 }, cause: "rewound" })
      yield* db.storage.retract(owner, 100)
      assert.lengthOf(yield* db.storage.owed("test", "actions", { afterSeq: 0, limit: 10 }), 1)
      yield* db.storage.release(owner)
      const runtime = yield* db.start({ plugins: [scriptedSource(feed)], actions: [credit], settings })
      yield* waitForEnd(runtime, 2)
      const texts = yield* db.texts
      assert.deepStrictEqual(texts.slice(0, 2), ["1 → credit notify", "-1 → credit notify"])
      assert.sameMembers(texts.slice(2), ["1 (2) → credit", "2 → credit"])
      assert.deepInclude(yield* sinkNow(runtime, "actions"), { state: "RUNNING" })
    }),
  )
})

describe("the sink of a program's actions", () => {
  it.live("has no policies, is not paused or deleted, and is the only one of its module and id", () =>
    Effect.gen(function* () {
      const db = yield* database
      const runtime = yield* db.start(watching(new ScriptedFeed()))
      const resources = resourcesOf(runtime)
      const put = (definition: object) =>
        Effect.map(
          Effect.flip(resources.putSink({ id: "actions", module: "actions", config: {}, ...definition })),
          (error) => (error instanceof Refused ? error.problems.map(({ path }) => path) : [error.message]),
        )
      assert.deepStrictEqual(
        yield* put({
          retry: { maxAttempts: 3 },
          throttle: {},
          aggregate: {},
          concurrency: 2,
          buffer: "DURABLE",
        }),
        ["retry", "throttle", "aggregate", "concurrency", "buffer"],
      )
      assert.deepStrictEqual(yield* put({ id: "other" }), ["module"])
      assert.deepStrictEqual(yield* put({ module: "log" }), ["id", "module"])
      const paused = yield* Effect.flip(resources.pauseSink("actions"))
      assert.include(paused.message, "pauseNetwork")
      assert.include(
        (yield* Effect.flip(resources.deleteSink("actions"))).message,
        "for as long as the program has any",
      )
      assert.deepInclude(yield* resources.putSink({ id: "actions", module: "actions", config: {} }), {
        state: "RUNNING",
      })
    }),
  )

  it.live("does not take the place of one that is stored under its id", () =>
    Effect.gen(function* () {
      const db = yield* database
      const { sink } = recorder("actions")
      yield* Effect.scoped(db.start({ resources: { sinks: [sink] } }))
      const error = yield* Effect.flip(Effect.scoped(db.start({ actions: [credit], settings })))
      assert.include(error.message, `a sink of the module "host:actions" is stored as "actions"`)
    }),
  )

  it.live("lets what its actions have not done yet count when a network or monitor is deleted", () =>
    Effect.gen(function* () {
      const db = yield* database
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const runtime = yield* db.start(watching(feed))
      yield* waitForEnd(runtime, 2)
      const { deleteMonitor, deleteNetwork } = resourcesOf(runtime)
      const refused = yield* Effect.flip(deleteMonitor("all"))
      assert.include(refused.message, "has 4 deliveries to actions that are not over")
      yield* deleteMonitor("all", { discard: true })
      yield* deleteNetwork("test")
      assert.deepStrictEqual(yield* db.texts, [])
    }),
  )
})
