import { assert } from "@effect/vitest"
import { Clock, Deferred, Effect, Schema } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { Provider } from "../../../../core/actions/provider.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { Credit, start } from "../program.ts"
import { Deposited, Noted, type Test, Transfers, writeMatch } from "./support.ts"

/** The part of the contract about who runs a delivery, and where its parts are kept. */
export const runners = (test: Test): void => {
  test("a delivery is held for its action's time limit and a minute; others leave it alone, and what is not yet due", (world) =>
    Effect.gen(function* () {
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const runs: Array<string> = []
      const slow = Action.make({
        name: "slow",
        on: Noted,
        timeoutMs: 20_000,
        run: ({ event }) =>
          Effect.gen(function* () {
            runs.push(event.payload.text)
            if (event.payload.text !== "held") return
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(goOn)
          }),
      })
      const { actions, until, sql } = yield* start(world, [slow])
      const other = yield* start(world, [slow])
      yield* actions.emit(Noted, { text: "held" })
      yield* Deferred.await(inside)
      const now = yield* Clock.currentTimeMillis
      const [{ lease_until: lease }] = (yield* sql(
        "select lease_until from blockwatcher_action_deliveries where state = 'running'",
      )) as readonly [any]
      const left = Number(lease) - now
      assert.isTrue(left <= 80_000 && left > 70_000, `${left}`)
      yield* sql(`insert into blockwatcher_events (id, type, version, encoding, payload, depth, created_at)
        values ('later', 'noted', 1, 1, '{"text":"later"}', 0, ${now})`)
      yield* sql(`insert into blockwatcher_action_deliveries (event_seq, action, state, attempts, due, created_at)
        select seq, 'slow', 'waiting', 0, ${now + 600_000}, 0 from blockwatcher_events where id = 'later'`)
      // Whoever runs this one has looked at the others, too.
      yield* other.actions.emit(Noted, { text: "next" })
      yield* until("succeeded", "slow")
      assert.deepStrictEqual(runs, ["held", "next"])
      yield* Deferred.succeed(goOn, undefined)
      yield* until("succeeded", "slow", 2)
      assert.lengthOf((yield* actions.list({ state: "waiting" })).deliveries, 1)
    }))

  test("several runners share the deliveries of one database, and none runs twice", (world) =>
    Effect.gen(function* () {
      const ran = new Map<string, Array<string>>()
      const both = yield* Deferred.make<void>()
      const share = (runner: string) =>
        Action.make({
          name: "share",
          on: Deposited,
          run: ({ event, em }) =>
            Effect.gen(function* () {
              ran.set(runner, [...(ran.get(runner) ?? []), event.payload.id])
              if (ran.size === 2) yield* Deferred.succeed(both, undefined)
              yield* Deferred.await(both)
              em.create(Credit, { id: event.payload.id, amount: "1" })
            }),
        })
      const settings = { concurrency: 2 }
      const { actions, until, sql } = yield* start(world, [share("one")], { settings })
      yield* start(world, [share("two")], { settings })
      const all = Array.from({ length: 12 }, (_, i) => `${i}`)
      yield* Effect.forEach(all, (id) => actions.emit(Deposited, { id, amount: 1n }), { concurrency: "unbounded" })
      yield* until("succeeded", "share", 12)
      assert.sameMembers([...ran.values()].flat(), all)
      assert.lengthOf(yield* sql("select * from credits"), 12)
    }))

  test("an event stays in the store that emitted it, and what its action writes is in the program's", (world) =>
    Effect.gen(function* () {
      let runs = 0
      const action = Action.make({
        name: "credit",
        on: Transfers,
        run: ({ event, em, emit }) =>
          Effect.gen(function* () {
            runs++
            em.create(Credit, { id: event.matchId, amount: event.payload.value })
            yield* emit(Noted, { text: event.id })
          }),
      })
      const hears = Action.make({ name: "hears", on: Noted, run: () => Effect.void })
      const started = yield* start(world, [action, hears])
      const { until, sql, runtimeSql } = started
      yield* writeMatch(started, ["credit"], { id: "m" })
      assert.match((yield* until("succeeded", "credit")).id, /^runtime:/)
      assert.match((yield* until("succeeded", "hears")).id, new RegExp(`^${world.name}:`))
      // As a crash leaves it between the commit in the program's store and the end of the delivery in the runtime's.
      yield* runtimeSql(`update blockwatcher_action_deliveries set state = 'waiting', due = 0, settled_at = null
        where action = 'credit'`)
      yield* until("succeeded", "credit")
      assert.strictEqual(runs, 1)
      assert.lengthOf(yield* sql("select * from credits"), 1)
      assert.lengthOf(yield* sql("select * from blockwatcher_handled_deliveries"), 1)
      assert.lengthOf(yield* sql("select * from blockwatcher_events where type = 'noted'"), 1)
      assert.lengthOf(yield* runtimeSql("select * from blockwatcher_events where type = 'match:transfers'"), 1)
    }))

  test("what is over for longer than the retention is removed with its records; what is parked stays with its calls", (world) =>
    Effect.gen(function* () {
      const writes = Action.make({
        name: "writes",
        on: Noted,
        run: ({ event, em }) => Effect.sync(() => void em.create(Credit, { id: event.payload.text, amount: "1" })),
      })
      const pay = Provider.operation({
        name: "pay",
        repeat: "never",
        input: Schema.String,
        output: Schema.Null,
        call: () => Effect.fail(new Error("no answer")),
      })
      const parks = Action.make({ name: "parks", on: Deposited, calls: { pay }, run: ({ calls }) => calls.pay("a") })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { actions, until, sql } = yield* start(world, [writes, parks])
          yield* actions.emit(Noted, { text: "a" })
          yield* actions.emit(Deposited, { id: "b", amount: 1n })
          yield* until("succeeded", "writes")
          yield* until("parked", "parks")
          yield* sql("update blockwatcher_events set created_at = 1")
          yield* sql("update blockwatcher_action_deliveries set created_at = 1")
          yield* sql("update blockwatcher_action_deliveries set settled_at = 1 where settled_at is not null")
        }),
      )
      const { actions, sql } = yield* start(world, [writes, parks])
      const left = Effect.map(actions.list(), ({ deliveries }) => deliveries.map(({ state }) => state).join())
      yield* waitUntil("what was over is gone", Effect.map(left, (states) => states === "parked").pipe(Effect.orDie))
      assert.lengthOf(yield* sql("select * from blockwatcher_events"), 1)
      assert.lengthOf(yield* sql("select * from blockwatcher_handled_deliveries"), 0)
      assert.lengthOf(yield* sql("select * from blockwatcher_provider_calls"), 1)
      assert.lengthOf(yield* sql("select * from credits"), 1)
    }))
}
