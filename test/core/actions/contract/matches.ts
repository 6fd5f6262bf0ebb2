import { assert } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import type { MatchState } from "../../../../core/storage/events.ts"
import { Credit, type Started, start } from "../program.ts"
import { Deposited, type Test, Transfers, writeMatch } from "./support.ts"

/** Credits what stands, and takes back what does not: whatever it hears, and in whatever order. */
const converging = (heard: Array<string> = []) =>
  Action.make({
    name: "credit",
    on: Transfers,
    run: ({ event, em, matches }) =>
      Effect.gen(function* () {
        heard.push(event.id)
        const state = yield* matches.state(event.matchId)
        const credit = yield* Effect.promise(() => em.findOne(Credit, event.matchId))
        if (state?.canonical === true && credit === null) {
          em.create(Credit, { id: event.matchId, amount: event.payload.value })
        }
        if (state?.canonical !== true && credit !== null) em.remove(credit)
      }),
  })

const credits = ({ sql }: Started) =>
  Effect.map(sql("select id, amount from credits order by id"), (rows) =>
    rows.map(({ id, amount }) => `${id}: ${amount}`),
  )

/** The part of the contract about the matches of monitors. */
export const matches = (test: Test): void => {
  test("an effect agrees with the state of its match, in whatever order its events come", (world) =>
    Effect.gen(function* () {
      const states = new Map<string, MatchState>()
      const heard: Array<string> = []
      const started = yield* start(world, [converging(heard)], { states })
      const { until } = started
      const tell = (kind: "match" | "retracted", life: number, id: string) =>
        writeMatch(started, ["credit"], { id, life, kind, value: `${life}00` })
      // The retraction comes first: the match has ended by then.
      states.set("early", { canonical: false, life: 1 })
      yield* tell("retracted", 1, "early")
      yield* until("succeeded", "credit", 1)
      yield* tell("match", 1, "early")
      yield* until("succeeded", "credit", 2)
      assert.deepStrictEqual(yield* credits(started), [])
      // It stands, is taken back, and stands again.
      states.set("flips", { canonical: true, life: 1 })
      yield* tell("match", 1, "flips")
      yield* until("succeeded", "credit", 3)
      assert.deepStrictEqual(yield* credits(started), ["flips: 100"])
      states.set("flips", { canonical: false, life: 1 })
      yield* tell("retracted", 1, "flips")
      yield* until("succeeded", "credit", 4)
      assert.deepStrictEqual(yield* credits(started), [])
      states.set("flips", { canonical: true, life: 2 })
      yield* tell("match", 2, "flips")
      yield* until("succeeded", "credit", 5)
      assert.deepStrictEqual(yield* credits(started), ["flips: 200"])
      assert.deepStrictEqual(heard, ["early-r", "early", "flips", "flips-r", "flips-2"])
    }))

  test("events of a network that was deleted and made again are run anew, although they have the ids of those before", (world) =>
    Effect.gen(function* () {
      const states = new Map<string, MatchState>()
      const started = yield* start(world, [converging([])], { states })
      const tell = (kind: "match" | "retracted") => writeMatch(started, ["credit"], { id: "m", kind, value: "100" })
      const life = Effect.gen(function* () {
        states.set("m", { canonical: true, life: 1 })
        yield* tell("match")
        yield* started.until("succeeded", "credit", 1)
        assert.deepStrictEqual(yield* credits(started), ["m: 100"])
        states.set("m", { canonical: false, life: 1 })
        yield* tell("retracted")
        yield* started.until("succeeded", "credit", 2)
        assert.deepStrictEqual(yield* credits(started), [])
      })
      yield* life
      yield* started.runtimeSql("delete from blockwatcher_action_deliveries")
      yield* started.runtimeSql("delete from blockwatcher_events")
      yield* life
    }))

  test("deliveries about one match never run at the same time, in any action or process; others do", (world) =>
    Effect.gen(function* () {
      const open = new Map<string, number>()
      const together: Array<string> = []
      const others = yield* Deferred.make<void>()
      let runs = 0
      const watching = (name: string) =>
        Action.make({
          name,
          on: Transfers,
          run: ({ event: { matchId } }) =>
            Effect.gen(function* () {
              open.set(matchId, (open.get(matchId) ?? 0) + 1)
              if (open.get(matchId)! > 1) together.push(matchId)
              if ([...open.values()].filter((n) => n > 0).length === 2) yield* Deferred.succeed(others, undefined)
              // Each waits until two matches have been worked on at once, so that it is seen if one is worked on twice.
              yield* Deferred.await(others)
              yield* Effect.sleep(2)
              runs++
              open.set(matchId, open.get(matchId)! - 1)
            }),
        })
      const actions = [watching("one"), watching("two")]
      const started = yield* start(world, actions)
      yield* start(world, actions)
      for (const id of ["a", "b"]) {
        for (const life of [1, 2]) {
          yield* writeMatch(started, ["one", "two"], { id, life })
          yield* writeMatch(started, ["one", "two"], { id, life, kind: "retracted" })
        }
      }
      yield* started.until("succeeded", "one", 8)
      yield* started.until("succeeded", "two", 8)
      assert.deepStrictEqual(together, [])
      assert.strictEqual(runs, 16)
    }))

  test("a run that a later run about its match has overtaken writes nothing, and runs again", (world) =>
    Effect.gen(function* () {
      const states = new Map([["a", { canonical: true, life: 1 }]])
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      let runs = 0
      const action = Action.make({
        name: "credit",
        on: Transfers,
        run: ({ event, em }) =>
          Effect.gen(function* () {
            em.create(Credit, { id: event.matchId, amount: `${++runs}` })
            if (runs > 1) return
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(goOn)
          }),
      })
      const started = yield* start(world, [action], { states })
      yield* writeMatch(started, ["credit"], { id: "a" })
      yield* Deferred.await(inside)
      // What another runner does that takes over when a lease ran out.
      yield* started.sql("update blockwatcher_runs set number = number + 1 where subject = 'a'")
      yield* Deferred.succeed(goOn, undefined)
      yield* started.until("succeeded", "credit")
      assert.deepStrictEqual(yield* credits(started), ["a: 2"])
    }))

  test("a run whose lease ran out is taken over, and writes nothing when it comes to its end", (world) =>
    Effect.gen(function* () {
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      let runs = 0
      const action = Action.make({
        name: "slow",
        on: Deposited,
        run: ({ event, em }) =>
          Effect.gen(function* () {
            const run = ++runs
            em.create(Credit, { id: `${event.payload.id} ${run}`, amount: "1" })
            if (run > 1) return
            yield* Effect.addFinalizer(() => Deferred.succeed(ended, undefined))
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(goOn)
          }),
      })
      const started = yield* start(world, [action])
      yield* started.actions.emit(Deposited, { id: "a", amount: 1n })
      yield* Deferred.await(inside)
      yield* started.sql("update blockwatcher_action_deliveries set lease_until = 1")
      yield* started.until("succeeded", "slow")
      yield* Deferred.succeed(goOn, undefined)
      yield* Deferred.await(ended)
      // One that comes behind it has been committed when it is over.
      yield* started.actions.emit(Deposited, { id: "b", amount: 1n })
      yield* started.until("succeeded", "slow", 2)
      assert.deepStrictEqual(yield* credits(started), ["a 2: 1", "b 3: 1"])
    }))
}
