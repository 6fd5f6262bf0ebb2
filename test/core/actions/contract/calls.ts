import { assert } from "@effect/vitest"
import { Deferred, Effect, Ref, Schema } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { NothingDone, Provider, type Repeat } from "../../../../core/actions/provider.ts"
import { Account, Credit, start } from "../program.ts"
import { AT_ONCE, Deposited, type Test } from "./support.ts"

const Payment = Schema.Struct({ to: Schema.String, amount: Schema.BigInt })
const Receipt = Schema.Struct({ number: Schema.BigInt })

interface Sent {
  readonly to: string
  readonly key: string
  readonly traceparent: string | undefined
}

/** A provider that notes what it is sent, and answers with a number; it may do something else first. */
const provider = (
  repeat: Repeat,
  before: (sent: number) => Effect.Effect<unknown, Error | NothingDone> = () => Effect.void,
) => {
  const sent: Array<Sent> = []
  const pay = Provider.operation({
    name: "pay",
    repeat,
    input: Payment,
    output: Receipt,
    call: ({ to }, { key, headers }) =>
      Effect.suspend(() => {
        sent.push({ to, key, traceparent: headers["traceparent"] })
        return Effect.as(before(sent.length), { number: 2n ** 100n + BigInt(sent.length) })
      }),
  })
  return { sent, pay }
}

const fails = (times: number) => (sent: number) => (sent <= times ? Effect.fail(new Error("no answer")) : Effect.void)

/** The part of the contract about calls to providers. */
export const calls = (test: Test): void => {
  test("a keyed call is sent with one key on every attempt, each call with another, and its result is replayed", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("keyed", fails(1))
      const runs = yield* Ref.make(0)
      const numbers: Array<bigint> = []
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        retry: { ...AT_ONCE, maxAttempts: 5 },
        run: ({ event, em, calls }) =>
          Effect.gen(function* () {
            const one = yield* calls.pay({ to: "one", amount: event.payload.amount })
            const two = yield* calls.pay({ to: "two", amount: event.payload.amount })
            numbers.push(one.number, two.number)
            if ((yield* Ref.updateAndGet(runs, (n) => n + 1)) === 1) return yield* Effect.fail(new Error("too late"))
            em.create(Credit, { id: event.payload.id, amount: `${one.number}` })
          }),
      })
      const { actions, until, sql } = yield* start(world, [action])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      assert.strictEqual((yield* until("succeeded", "pays")).attempts, 2)
      assert.deepStrictEqual(
        sent.map(({ to }) => to),
        ["one", "one", "two"],
      )
      assert.strictEqual(sent[0]!.key, sent[1]!.key)
      assert.notStrictEqual(sent[1]!.key, sent[2]!.key)
      // The second run got what the first had been answered.
      assert.deepStrictEqual(numbers.slice(0, 2), numbers.slice(2))
      assert.deepStrictEqual(yield* sql("select amount from credits"), [{ amount: `${2n ** 100n + 2n}` }])
    }))

  test("a run that met another one runs again without sending its calls again", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("keyed")
      let meddle: Effect.Effect<unknown> = Effect.void
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        run: ({ em, calls }) =>
          Effect.gen(function* () {
            const account = yield* Effect.promise(() => em.findOneOrFail(Account, "a"))
            yield* calls.pay({ to: "one", amount: 1n })
            account.balance = `${BigInt(account.balance) + 1n}`
            if (account.balance === "1") yield* meddle
          }),
      })
      const { actions, until, sql } = yield* start(world, [action])
      meddle = sql("update accounts set balance = '5', version = version + 1")
      yield* sql("insert into accounts (id, balance) values ('a', '0')")
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* until("succeeded", "pays")
      assert.lengthOf(sent, 1)
      assert.deepStrictEqual(yield* sql("select balance from accounts"), [{ balance: "6" }])
    }))

  test("calls go one after another, also when the program makes them at once", (world) =>
    Effect.gen(function* () {
      const open = { now: 0, most: 0 }
      const { pay, sent } = provider("keyed", () =>
        Effect.gen(function* () {
          open.most = Math.max(open.most, ++open.now)
          yield* Effect.yieldNow
          open.now--
        }),
      )
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        run: ({ calls }) =>
          Effect.forEach(["a", "b", "c"], (to) => calls.pay({ to, amount: 1n }), { concurrency: "unbounded" }),
      })
      const { actions, until } = yield* start(world, [action])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* until("succeeded", "pays")
      assert.deepStrictEqual([sent.length, open.most], [3, 1])
    }))

  const others: Readonly<Record<string, (context: any) => Effect.Effect<unknown>>> = {
    "has other arguments": ({ calls }) => calls.pay({ to: "other", amount: 1n }),
    "is not made any more": () => Effect.void,
    "is another operation": ({ calls }) => calls.refund({ to: "one", amount: 1n }),
  }
  test("a rerun that does not make the recorded calls is parked as diverged, and writes nothing", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("keyed")
      const refund = { ...pay, name: "refund" }
      const begun = new Set<string>()
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay, refund },
        retry: AT_ONCE,
        run: (context) =>
          Effect.gen(function* () {
            const { id } = context.event.payload
            context.em.create(Credit, { id, amount: "1" })
            if (begun.has(id)) {
              // Whatever the program makes of it.
              yield* Effect.exit(others[id]!(context))
              return
            }
            begun.add(id)
            yield* context.calls.pay({ to: "one", amount: 1n })
            return yield* Effect.fail(new Error("later"))
          }),
      })
      const { actions, until, sql } = yield* start(world, [action])
      for (const [i, what] of Object.keys(others).entries()) {
        yield* actions.emit(Deposited, { id: what, amount: 1n })
        assert.strictEqual((yield* until("parked", "pays", i + 1)).code, "call_diverged", what)
        assert.lengthOf(sent, i + 1)
      }
      assert.lengthOf(yield* sql("select * from credits"), 0)
    }))

  test("a call that may never be repeated is sent once; one whose outcome is not known rests until it is resolved", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("never", (n) => (n % 2 === 1 ? Effect.fail(new Error("no answer")) : Effect.void))
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        retry: AT_ONCE,
        run: ({ event, em, calls }) =>
          Effect.gen(function* () {
            // That it is ignored does not make it known.
            const receipt = yield* Effect.option(calls.pay({ to: event.payload.id, amount: 1n }))
            const amount = receipt._tag === "Some" ? `${receipt.value.number}` : "none"
            em.create(Credit, { id: event.payload.id, amount })
          }),
      })
      const { actions, until, sql } = yield* start(world, [action])
      yield* actions.emit(Deposited, { id: "done", amount: 1n })
      const { id } = yield* until("parked", "pays")
      assert.deepInclude(yield* actions.get(id), { code: "outcome_unknown" })
      assert.lengthOf(sent, 1)
      assert.lengthOf(yield* sql("select * from credits"), 0)
      assert.include((yield* Effect.flip(actions.retry(id))).message, "resolve it, or cancel it")
      const wrong = yield* Effect.flip(actions.resolve(id, { done: true, result: { number: 7 } }))
      assert.include(wrong.message, "the result does not fit the output schema of pay: number: must be")
      yield* actions.resolve(id, { done: true, result: { number: "7" } })
      yield* until("succeeded", "pays")
      assert.deepStrictEqual(yield* sql("select amount from credits where id = 'done'"), [{ amount: "7" }])
      assert.lengthOf(sent, 1)

      yield* actions.emit(Deposited, { id: "sent again", amount: 1n })
      yield* until("succeeded", "pays", 2)
      yield* actions.emit(Deposited, { id: "not done", amount: 1n })
      const parked = yield* until("parked", "pays")
      yield* actions.resolve(parked.id, { done: false })
      yield* until("succeeded", "pays", 3)
      assert.deepStrictEqual(
        sent.map(({ to }) => to),
        ["done", "sent again", "not done", "not done"],
      )
      assert.include((yield* Effect.flip(actions.resolve(id, { done: false }))).message, "only an unknown outcome")
    }))

  test("a call that may never be repeated is, when it is known that nothing was done", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("never", (n) =>
        n < 3 ? Effect.fail(new NothingDone({ reason: "busy" })) : Effect.void,
      )
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        retry: AT_ONCE,
        run: ({ calls }) => calls.pay({ to: "a", amount: 1n }),
      })
      const { actions, until } = yield* start(world, [action])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      assert.strictEqual((yield* until("succeeded", "pays")).attempts, 2)
      assert.lengthOf(sent, 3)
    }))

  test("the intent of a call that may never be repeated is stored before it is sent, and outlives its process", (world) =>
    Effect.gen(function* () {
      const sending = yield* Deferred.make<void>()
      const { sent, pay } = provider("never", (n) =>
        n === 1 ? Effect.andThen(Deferred.succeed(sending, undefined), Effect.never) : Effect.void,
      )
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        retry: AT_ONCE,
        run: ({ calls }) => calls.pay({ to: "a", amount: 1n }),
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { actions, sql } = yield* start(world, [action], { settings: { drainTimeoutMs: 1 } })
          yield* actions.emit(Deposited, { id: "a", amount: 1n })
          yield* Deferred.await(sending)
          assert.lengthOf(yield* sql("select * from blockwatcher_provider_calls where state = 'intent'"), 1)
        }),
      )
      const { until } = yield* start(world, [action])
      assert.strictEqual((yield* until("parked", "pays")).code, "outcome_unknown")
      assert.lengthOf(sent, 1)
    }))

  test("calls go on with the trace of the event, as do the events that an action emits", (world) =>
    Effect.gen(function* () {
      const { sent, pay } = provider("keyed")
      const action = Action.make({
        name: "pays",
        on: Deposited,
        calls: { pay },
        run: ({ calls, emit, event }) =>
          event.payload.id === "b"
            ? calls.pay({ to: "a", amount: 1n })
            : emit(Deposited, { ...event.payload, id: "b" }),
      })
      const { actions, until } = yield* start(world, [action])
      const trace = yield* actions
        .emit(Deposited, { id: "a", amount: 1n })
        .pipe(Effect.andThen(Effect.map(Effect.currentSpan, ({ traceId }) => traceId)), Effect.withSpan("host"))
      yield* until("succeeded", "pays", 2)
      assert.match(sent[0]!.traceparent!, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`))
    }))
}
