import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Ref } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { Account, Credit, start } from "../program.ts"
import { AMOUNT, AT_ONCE, Deposited, Noted, type Test } from "./support.ts"

/** The part of the contract about one run: what it writes, and what becomes of it. */
export const running = (test: Test): void => {
  test("an event reaches each subscribed action, whose writes, events and handled record commit together", (world) =>
    Effect.gen(function* () {
      const credit = Action.make({
        name: "credit",
        on: Deposited,
        run: ({ event, em, emit }) =>
          Effect.gen(function* () {
            em.create(Credit, { id: event.payload.id, amount: `${event.payload.amount}` })
            yield* emit(Noted, { text: `credited ${event.payload.id}` })
          }),
      })
      const heard: Array<string> = []
      const audit = Action.make({
        name: "audit",
        on: [Deposited, Noted],
        run: ({ event }) =>
          Effect.sync(() => {
            heard.push(event.type === "deposited" ? event.payload.id : event.payload.text)
          }),
      })
      const { actions, until, sql } = yield* start(world, [credit, audit])
      yield* actions.emit(Deposited, { id: "a", amount: AMOUNT })
      yield* until("succeeded", "audit", 2)
      const delivery = yield* until("succeeded", "credit")
      assert.deepStrictEqual(yield* sql("select id, amount from credits"), [{ id: "a", amount: `${AMOUNT}` }])
      assert.sameMembers(heard, ["a", "credited a"])
      assert.deepInclude(delivery, { attempts: 0, code: null, type: "deposited", tenant: null, matchId: null })
      // `audit` neither writes nor emits: running it again would change nothing.
      assert.lengthOf(yield* sql("select * from blockwatcher_handled_deliveries"), 1)
      assert.lengthOf(yield* sql("select * from blockwatcher_runs"), 0)
    }))

  test("a repeated delivery changes nothing and emits nothing again", (world) =>
    Effect.gen(function* () {
      const runs = yield* Ref.make(0)
      const forward = Action.make({
        name: "forward",
        on: Deposited,
        run: ({ event, emit }) =>
          Effect.andThen(
            Ref.update(runs, (n) => n + 1),
            emit(Noted, { text: event.payload.id }),
          ),
      })
      const { actions, until, sql } = yield* start(world, [forward])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* until("succeeded", "forward")
      // As a crash would leave it that came between a run's commit and the end of its delivery.
      yield* sql("update blockwatcher_action_deliveries set state = 'waiting', settled_at = null, due = 0")
      yield* until("succeeded", "forward")
      assert.strictEqual(yield* Ref.get(runs), 1)
      assert.lengthOf(yield* sql("select * from blockwatcher_events where type = 'noted'"), 1)
    }))

  test("a run may emit more events than one statement holds", (world) =>
    Effect.gen(function* () {
      const count = 8_000
      const spread = Action.make({
        name: "spread",
        on: Deposited,
        run: ({ emit }) => Effect.forEach(Array(count).keys(), (n) => emit(Noted, { text: `${n}` }), { discard: true }),
      })
      const { actions, until, sql } = yield* start(world, [spread])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* until("succeeded", "spread")
      const [row] = yield* sql("select count(*) as emitted from blockwatcher_events where type = 'noted'")
      assert.strictEqual(Number(row!["emitted"]), count)
    }))

  test("of runs that change the same entity, those that were too late run again: no change is lost", (world) =>
    Effect.gen(function* () {
      const reading = yield* Ref.make(0)
      const all = yield* Deferred.make<void>()
      const add = Action.make({
        name: "add",
        on: Deposited,
        run: ({ event, em }) =>
          Effect.gen(function* () {
            const account = yield* Effect.promise(() => em.findOneOrFail(Account, "a"))
            // Each has read before any writes.
            if ((yield* Ref.updateAndGet(reading, (n) => n + 1)) === 5) yield* Deferred.succeed(all, undefined)
            yield* Deferred.await(all)
            account.balance = `${BigInt(account.balance) + event.payload.amount}`
          }),
      })
      const { actions, until, sql } = yield* start(world, [add])
      yield* sql("insert into accounts (id, balance) values ('a', '0')")
      yield* Effect.forEach([1n, 2n, 3n, 4n, 5n], (amount) => actions.emit(Deposited, { id: `${amount}`, amount }), {
        concurrency: "unbounded",
      })
      yield* until("succeeded", "add", 5)
      assert.deepStrictEqual(yield* sql("select balance from accounts"), [{ balance: "15" }])
      assert.isAbove(yield* Ref.get(reading), 5)
      // Having met another run is no failed attempt.
      assert.strictEqual((yield* until("succeeded", "add")).attempts, 0)
    }))

  test("an entity that someone else changed or removed since it was read is not removed; the run runs again", (world) =>
    Effect.gen(function* () {
      const seen: Array<string | null> = []
      const read = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const close = Action.make({
        name: "close",
        on: Deposited,
        run: ({ em }) =>
          Effect.gen(function* () {
            const account = yield* Effect.promise(() => em.findOne(Account, "a"))
            seen.push(account?.balance ?? null)
            if (account?.balance === "0") em.remove(account)
            yield* Deferred.succeed(read, undefined)
            yield* Deferred.await(goOn)
          }),
      })
      const { actions, until, sql } = yield* start(world, [close])
      yield* sql("insert into accounts (id, balance) values ('a', '0')")
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* Deferred.await(read)
      yield* sql("update accounts set balance = '7', version = version + 1")
      yield* Deferred.succeed(goOn, undefined)
      yield* until("succeeded", "close")
      assert.deepStrictEqual(seen, ["0", "7"])
      assert.deepStrictEqual(yield* sql("select balance from accounts"), [{ balance: "7" }])
    }))

  test("while an action runs, no transaction is open: others write", (world) =>
    Effect.gen(function* () {
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const slow = Action.make({
        name: "slow",
        on: Deposited,
        run: ({ em }) =>
          Effect.gen(function* () {
            yield* Effect.promise(() => em.find(Account, {}))
            em.create(Account, { id: "b", balance: "1" })
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(goOn)
          }),
      })
      const { actions, until, sql, runtimeSql } = yield* start(world, [slow])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* Deferred.await(inside)
      yield* sql("insert into accounts (id, balance) values ('a', '0')")
      yield* runtimeSql("insert into counters (name, value) values ('written meanwhile', 1)")
      yield* Deferred.succeed(goOn, undefined)
      yield* until("succeeded", "slow")
      assert.lengthOf(yield* sql("select * from accounts"), 2)
    }))

  test("an action cannot write past its last transaction, and is told why", (world) =>
    Effect.gen(function* () {
      const refused: Array<string> = []
      const attempts = (em: any): ReadonlyArray<() => unknown> => [
        () => em.flush(),
        () => em.transactional(async () => {}),
        () => em.begin(),
        () => em.insert(Account, { id: "x", balance: "0" }),
        () => em.nativeUpdate(Account, {}, { balance: "0" }),
        () => em.nativeDelete(Account, {}),
        () => em.upsert(Account, { id: "x", balance: "0" }),
        () => em.execute("delete from accounts"),
        () => em.createQueryBuilder(Account).delete().execute(),
        () => em.getKysely(),
        () => em.getConnection().execute("delete from accounts"),
        () => em.getDriver().nativeDelete(Account, {}),
        () => em.getRepository(Account).nativeDelete({}),
        () => em.getUnitOfWork().commit(),
        () => em.fork().flush(),
        () => em.fork().persist({}),
      ]
      const past = Action.make({
        name: "break",
        on: Deposited,
        run: ({ em }) =>
          Effect.gen(function* () {
            const account = yield* Effect.promise(() => em.findOneOrFail(Account, "a"))
            account.balance = "9"
            for (const attempt of attempts(em)) {
              const exit = yield* Effect.exit(
                Effect.tryPromise({ try: async () => attempt(), catch: (error) => error }),
              )
              if (Exit.isFailure(exit))
                refused.push(String(exit.cause.reasons.map((reason: any) => reason.error?._tag)))
            }
            assert.strictEqual(yield* Effect.promise(() => em.count(Account)), 1)
          }),
      })
      const { actions, until, sql } = yield* start(world, [past])
      yield* sql("insert into accounts (id, balance) values ('a', '0')")
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      yield* until("succeeded", "break")
      assert.deepStrictEqual(
        refused,
        attempts(null).map(() => "StagingRefused"),
      )
      assert.deepStrictEqual(yield* sql("select id, balance from accounts"), [{ id: "a", balance: "9" }])
    }))

  test("an entity without a version is not changed: a change of someone else would be lost", (world) =>
    Effect.gen(function* () {
      const change = Action.make({
        name: "change",
        on: Deposited,
        retry: { ...AT_ONCE, maxAttempts: 1 },
        run: ({ em }) =>
          Effect.gen(function* () {
            const credit = yield* Effect.promise(() => em.findOneOrFail(Credit, "a"))
            credit.amount = "2"
          }),
      })
      const { actions, until, sql } = yield* start(world, [change])
      yield* sql("insert into credits (id, amount) values ('a', '1')")
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      assert.include((yield* until("failed", "change")).reason, "entity Credit was changed and has no version property")
      assert.deepStrictEqual(yield* sql("select amount from credits"), [{ amount: "1" }])
    }))

  test("a run that fails or breaks is tried again as often as its policy says, then it is failed and kept", (world) =>
    Effect.gen(function* () {
      const runs = yield* Ref.make(0)
      const tell = (what: string) =>
        Effect.flatMap(
          Ref.updateAndGet(runs, (n) => n + 1),
          (n) => Effect.succeed(`${what} ${n}`),
        )
      const failing = Action.make({
        name: "failing",
        on: Deposited,
        retry: AT_ONCE,
        run: ({ event, em }) =>
          Effect.gen(function* () {
            em.create(Credit, { id: "never", amount: "1" })
            const text = yield* tell(event.payload.id)
            return yield* event.payload.id === "fails" ? Effect.fail(new Error(text)) : Effect.die(new Error(text))
          }),
      })
      const { actions, until, sql } = yield* start(world, [failing])
      yield* actions.emit(Deposited, { id: "fails", amount: 1n })
      assert.deepInclude(yield* until("failed", "failing"), {
        code: "attempts_exhausted",
        reason: "fails 3",
        attempts: 3,
      })
      yield* actions.emit(Deposited, { id: "breaks", amount: 1n })
      assert.deepInclude(yield* until("failed", "failing", 2), { reason: "breaks 6", attempts: 3 })
      assert.lengthOf(yield* sql("select * from credits"), 0)
      assert.lengthOf(yield* sql("select * from blockwatcher_handled_deliveries"), 0)
    }))

  test("a run that takes longer than its action may is ended, and counts as failed", (world) =>
    Effect.gen(function* () {
      const endless = Action.make({
        name: "endless",
        on: Deposited,
        retry: { ...AT_ONCE, maxAttempts: 1 },
        timeoutMs: 20,
        run: () => Effect.never,
      })
      const { actions, until } = yield* start(world, [endless])
      yield* actions.emit(Deposited, { id: "a", amount: 1n })
      assert.include((yield* until("failed", "endless")).reason, "took longer than the action's timeoutMs, which is 20")
    }))

  test("a chain of events ends at 16, and a delivery to an action that the program does not have fails", (world) =>
    Effect.gen(function* () {
      const echo = Action.make({ name: "echo", on: Noted, run: ({ emit, event }) => emit(Noted, event.payload) })
      const { actions, until, sql } = yield* start(world, [echo])
      yield* actions.emit(Noted, { text: "a" })
      assert.deepInclude(yield* until("failed", "echo"), { code: "event_chain_limit", attempts: 0 })
      assert.lengthOf(yield* sql("select * from blockwatcher_action_deliveries where state = 'succeeded'"), 16)
      yield* sql(`insert into blockwatcher_action_deliveries (event_seq, action, state, attempts, due, created_at)
        select min(seq), 'gone', 'waiting', 0, 0, 0 from blockwatcher_events`)
      assert.deepInclude(yield* until("failed", "gone"), { code: "unknown_action", attempts: 0 })
    }))

  test("what runs when the program stops has time to end; what does not end is given back", (world) =>
    Effect.gen(function* () {
      const ready = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const runs = yield* Ref.make(0)
      const action = Action.make({
        name: "slow",
        on: Deposited,
        run: ({ event, em }) =>
          Effect.gen(function* () {
            em.create(Credit, { id: event.payload.id, amount: "1" })
            if ((yield* Ref.updateAndGet(runs, (n) => n + 1)) === 2) yield* Deferred.succeed(ready, undefined)
            yield* event.payload.id === "ends" ? Deferred.await(goOn) : Effect.never
          }),
      })
      const settings = { drainTimeoutMs: 300 }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { actions } = yield* start(world, [action], { settings })
          yield* actions.emit(Deposited, { id: "ends", amount: 1n })
          yield* actions.emit(Deposited, { id: "never ends", amount: 1n })
          yield* Deferred.await(ready)
          // Released by the very stop that waits for it.
          yield* Effect.addFinalizer(() => Deferred.succeed(goOn, undefined))
        }),
      )
      const { actions, sql } = yield* start(world, [], { settings })
      const states = Effect.map(actions.list(), ({ deliveries }) => deliveries.map(({ state }) => state))
      assert.sameMembers([...(yield* states)], ["succeeded", "waiting"])
      assert.deepStrictEqual(yield* sql("select id from credits"), [{ id: "ends" }])
    }))

  test("an event of the host program commits with what the program writes, or not at all", (world) =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const hear = Action.make({
        name: "hear",
        on: Noted,
        run: ({ event }) => Effect.sync(() => void heard.push(event.payload.text)),
      })
      const { actions, orm, until } = yield* start(world, [hear])
      const context = yield* Effect.context<never>()
      const within = (text: string, fails: boolean) =>
        Effect.tryPromise(() =>
          orm.em.fork().transactional(async (em) => {
            await Effect.runPromiseWith(context)(actions.emit(Noted, { text }, { em }))
            if (fails) throw new Error("no")
          }),
        )
      yield* Effect.exit(within("taken back", true))
      yield* within("committed", false)
      yield* until("succeeded", "hear")
      assert.deepStrictEqual(heard, ["committed"])
      const outside = yield* Effect.flip(actions.emit(Noted, { text: "x" }, { em: orm.em.fork() }))
      assert.include(outside.message, "its em is in no transaction")
      const invalid = yield* Effect.flip(actions.emit(Noted, { text: 1 } as never))
      assert.strictEqual(
        invalid.message,
        'the payload of event type "noted" does not fit its schema: text: must be a string',
      )
      yield* waitUntil("nothing more is heard", () => heard.length === 1)
    }))
}
