import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { Provider } from "../../../../core/actions/provider.ts"
import type { DeliveryView } from "../../../../core/actions/views.ts"
import { start } from "../program.ts"
import { AT_ONCE, Deposited, Noted, type Test } from "./support.ts"

const ids = (deliveries: ReadonlyArray<DeliveryView>) => deliveries.map(({ id }) => id)

/** An action that fails once and for all while it is told to. */
const failing = (name: string, fails: { now: boolean }) =>
  Action.make({
    name,
    on: Deposited,
    retry: { ...AT_ONCE, maxAttempts: 1 },
    run: () => Effect.suspend(() => (fails.now ? Effect.fail(new Error("no")) : Effect.void)),
  })

/** The part of the contract about what operators see and do of many deliveries, and of unknown outcomes. */
export const many = (test: Test): void => {
  test("deliveries are listed by state, action and store, the oldest first, page by page, and counted", (world) =>
    Effect.gen(function* () {
      const fails = { now: true }
      const { actions, until } = yield* start(world, [failing("a", fails), failing("b", fails)])
      for (const id of ["1", "2", "3"]) yield* actions.emit(Deposited, { id, amount: 1n })
      yield* until("failed", "a", 3)
      yield* until("failed", "b", 3)
      const all = (yield* actions.list()).deliveries
      assert.lengthOf(all, 6)
      assert.deepStrictEqual(
        all,
        all.toSorted((one, other) => Number(one.id.split(":")[1]) - Number(other.id.split(":")[1])),
      )
      const { name: store } = world
      const first = yield* actions.list({ state: "failed", limit: 4 })
      const second = yield* actions.list({ state: "failed", limit: 4, after: first.next })
      assert.deepStrictEqual([...ids(first.deliveries), ...ids(second.deliveries)], ids(all))
      assert.deepStrictEqual([first.next, second.next], [ids(all)[3], null])
      const ofA = yield* actions.list({ action: "a", store })
      assert.deepStrictEqual(ids(ofA.deliveries), ids(all.filter(({ action }) => action === "a")))
      const event = {
        type: "deposited",
        version: 1,
        tenant: null,
        matchId: null,
        life: null,
        kind: null,
        network: null,
      }
      const possible = { retryable: true, resolvable: false, cancellable: true }
      const end = { state: "failed", code: "attempts_exhausted", reason: "no", attempts: 1 } as const
      assert.deepInclude(ofA.deliveries[0], { store, ...end, ...event, ...possible })
      assert.isAtMost(ofA.deliveries[0]!.emittedAt, ofA.deliveries[0]!.settledAt!)
      assert.deepStrictEqual((yield* actions.list({ action: "a", state: "waiting" })).deliveries, [])
      assert.deepStrictEqual(
        [
          yield* actions.count(),
          yield* actions.count({ state: "failed", action: "a" }),
          yield* actions.count({ state: "parked" }),
        ],
        [6, 3, 0],
      )
      assert.strictEqual(
        (yield* Effect.flip(actions.list({ action: "c" }))).message,
        'action "c" does not exist; there are "a", "b"',
      )
      assert.include(
        (yield* Effect.flip(actions.count({ store: "none" }))).message,
        'event store "none" does not exist; there are "runtime"',
      )
      for (const after of ["x", "none:1", `${store}:1x`]) {
        assert.strictEqual((yield* Effect.flip(actions.list({ after })))._tag, "InvalidCursor")
      }
    }))

  test("actions are shown with what they get and how many deliveries they have, also those that the program dropped", (world) =>
    Effect.gen(function* () {
      const fails = { now: true }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { actions, until } = yield* start(world, [failing("dropped", fails)])
          yield* actions.emit(Deposited, { id: "1", amount: 1n })
          yield* until("failed", "dropped")
        }),
      )
      const hears = Action.make({ name: "hears", on: [Noted, Deposited], run: () => Effect.void })
      const { actions, until } = yield* start(world, [hears])
      yield* actions.emit(Noted, { text: "x" })
      yield* until("succeeded", "hears")
      const views = yield* actions.overview()
      const counts = views.map(({ name, counts: own }) => [
        name,
        ...own.map(({ store, state, deliveries }) => `${store} ${state} ${deliveries}`),
      ])
      assert.deepStrictEqual(counts, [
        ["hears", `${world.name} succeeded 1`],
        ["dropped", `${world.name} failed 1`],
      ])
      assert.deepStrictEqual(
        views.map(({ declared, subscriptions }) => [declared, subscriptions.map(({ type }) => type)]),
        [
          [true, ["noted", "deposited"]],
          [false, []],
        ],
      )
      assert.deepStrictEqual(
        (yield* actions.overview(["waiting"])).flatMap(({ counts: own }) => own),
        [],
      )
      assert.deepInclude(
        (yield* actions.retry((yield* actions.list({ action: "dropped" })).deliveries[0]!.id)).state,
        "waiting",
      )
      assert.deepInclude(yield* until("failed", "dropped"), { code: "unknown_action" })
    }))

  test("many are retried or cancelled by state and action, the oldest first; those of unknown outcome are left", (world) =>
    Effect.gen(function* () {
      const fails = { now: true }
      const pay = Provider.operation({
        name: "pay",
        repeat: "never",
        input: Schema.String,
        output: Schema.Struct({ number: Schema.BigInt, at: Schema.String }),
        call: () => Effect.fail(new Error("no answer")),
      })
      const pays = Action.make({
        name: "pays",
        on: Noted,
        calls: { pay },
        retry: AT_ONCE,
        run: ({ event, calls }) => calls.pay(event.payload.text),
      })
      const { actions, until } = yield* start(world, [failing("a", fails), failing("b", fails), pays])
      for (const id of ["1", "2", "3"]) yield* actions.emit(Deposited, { id, amount: 1n })
      yield* actions.emit(Noted, { text: "x" })
      yield* until("failed", "a", 3)
      yield* until("failed", "b", 3)
      const unknown = yield* until("parked", "pays")
      assert.deepInclude(unknown, { retryable: false, resolvable: true, cancellable: true })
      const calls = (yield* actions.calls([unknown])).get(unknown.id)!
      assert.deepStrictEqual(
        calls.map(({ place, operation, state }) => [place, operation, state]),
        [[0, "pay", "intent"]],
      )
      assert.match(calls[0]!.key, /^[0-9a-f]{64}$/)

      const cancelled = yield* actions.cancelAll({ states: ["failed"], action: "b", limit: 2 })
      assert.deepInclude(cancelled, { changed: 2, skipped: 0 })
      assert.deepStrictEqual(yield* actions.cancelAll({ states: ["failed"], action: "b", after: cancelled.next }), {
        changed: 1,
        skipped: 0,
        next: null,
      })
      assert.strictEqual(yield* actions.count({ state: "cancelled", action: "b" }), 3)
      fails.now = false
      assert.deepStrictEqual(yield* actions.retryAll({ states: ["failed", "parked"], store: world.name }), {
        changed: 3,
        skipped: 1,
        next: null,
      })
      yield* until("succeeded", "a", 3)
      assert.strictEqual((yield* actions.get(unknown.id)).state, "parked")
      assert.include(
        (yield* Effect.flip(actions.retry((yield* actions.list({ action: "a" })).deliveries[0]!.id))).message,
        "it is succeeded",
      )

      const wrong = yield* Effect.flip(actions.resolve(unknown.id, { done: true, result: { number: 7 } }))
      assert.deepStrictEqual(wrong._tag === "ResultInvalid" ? wrong.problems.map(({ path }) => path) : wrong, [
        "number",
        "at",
      ])
      yield* actions.cancel(unknown.id)
      assert.deepInclude(yield* actions.get(unknown.id), { state: "cancelled", retryable: true, resolvable: false })
      assert.include(
        (yield* Effect.flip(actions.resolve(unknown.id, { done: false }))).message,
        "only an unknown outcome",
      )
    }))

  test("an answer about an unknown outcome that is recorded is not given up for another one", (world) =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const pay = Provider.operation({
        name: "pay",
        repeat: "never",
        input: Schema.String,
        output: Schema.Struct({ number: Schema.Int }),
        call: (text) =>
          Effect.suspend(() =>
            sent.push(text) === 1 ? Effect.fail(new Error("no answer")) : Effect.succeed({ number: 1 }),
          ),
      })
      const pays = Action.make({
        name: "pays",
        on: Noted,
        calls: { pay },
        retry: AT_ONCE,
        run: ({ event, calls }) => calls.pay(event.payload.text),
      })
      const { actions, until, sql } = yield* start(world, [pays])
      yield* actions.emit(Noted, { text: "x" })
      const { id } = yield* until("parked", "pays")
      // As a crash leaves it that comes between the answer and the next step.
      yield* sql("delete from blockwatcher_provider_calls")
      assert.include(
        (yield* Effect.flip(actions.resolve(id, { done: true, result: { number: 7 } }))).message,
        "it was resolved as not done before; say so again, or cancel it",
      )
      assert.lengthOf(sent, 1)
      yield* actions.resolve(id, { done: false })
      yield* until("succeeded", "pays")
      assert.lengthOf(sent, 2)
    }))
}
