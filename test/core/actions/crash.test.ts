import { assert, describe, it } from "@effect/vitest"
import type { MikroORM } from "@mikro-orm/core"
import { Effect, Layer, Schema, type Scope } from "effect"
import { Action } from "../../../core/actions/action.ts"
import { EventStore } from "../../../core/actions/event-store.ts"
import { Provider } from "../../../core/actions/provider.ts"
import { layerPostgres } from "../../../core/storage/postgres.ts"
import { layerSqlite } from "../../../core/storage/sqlite/layer.ts"
import { isSoak } from "../../system/seed.ts"
import { runtimeDatabases } from "../storage/postgres/databases.ts"
import { postgresServer } from "../storage/postgres/server.ts"
import { waitUntil } from "../../support/scripted-source.ts"
import { watch } from "../../support/watched-orm.ts"
import { databaseFiles } from "../storage/sqlite/files.ts"
import { Account, Credit, entities, prepare, start, type World } from "./program.ts"
import { AT_ONCE, Deposited, Noted } from "./contract/support.ts"

const file = databaseFiles()
const postgres = postgresServer()

/** What a runner writes that has nothing to do. */
const IDLE = /subject = ''|lease_until <=/

/** A process that ends before its n-th write: from then on, nothing of it reaches the database. */
class Process {
  statements = 0
  ends = Number.POSITIVE_INFINITY

  get hasEnded(): boolean {
    return this.statements >= this.ends
  }

  /** Makes the tables, and hears of every statement from then on. */
  readonly prepare = async (orm: MikroORM): Promise<void> => {
    await prepare(orm)
    watch(orm, {
      statement: (sql) => {
        if (/^\s*(insert|update|delete|with)/i.test(sql) && !IDLE.test(sql)) this.statements++
        if (this.hasEnded) throw new Error("the process has ended")
      },
    })
  }
}

/** What the provider was asked for: it knows repeats by their keys. */
class PaymentProvider {
  readonly requests: Array<string> = []
  readonly effects = new Set<string>()

  pay(repeat: "keyed" | "never", process: Process) {
    return Provider.operation({
      name: "pay",
      repeat,
      input: Schema.Struct({ to: Schema.String }),
      output: Schema.Struct({ number: Schema.Int }),
      call: (_, { key }) =>
        Effect.suspend(() => {
          // A process that has ended sends nothing, and hears of no answer.
          if (process.hasEnded) return Effect.fail(new Error("the process has ended"))
          this.requests.push(key)
          this.effects.add(key)
          return Effect.succeed({ number: this.effects.size })
        }),
    })
  }
}

interface Crashing {
  readonly world: (process: Process) => World
}

const sqliteOwn = Effect.sync((): Crashing => {
  const path = file(`${crypto.randomUUID()}/runtime.db`)
  return {
    world: (process) => ({
      name: "runtime",
      storage: layerSqlite({ path }),
      store: EventStore.layerRuntime({ entities, prepare: process.prepare }),
    }),
  }
})

const sqliteAnother = Effect.promise(async (): Promise<Crashing> => {
  const sqlite = await import("@mikro-orm/sqlite")
  const [path, dbName] = [file(`${crypto.randomUUID()}/runtime.db`), file(`${crypto.randomUUID()}.db`)]
  return {
    world: (process) => ({
      name: "program",
      storage: layerSqlite({ path }),
      store: Layer.unwrap(
        Effect.gen(function* () {
          const orm = yield* Effect.acquireRelease(
            Effect.promise(() => sqlite.MikroORM.init({ entities, dbName, driverOptions: { timeout: 0 } })),
            (opened) => Effect.promise(() => opened.close(true)),
          )
          yield* Effect.promise(() => process.prepare(orm as never))
          return EventStore.layer(orm)
        }),
      ),
    }),
  }
})

const postgresOwn = Effect.map(
  runtimeDatabases(() => postgres.server),
  (url): Crashing => ({
    world: (process) => ({
      name: "runtime",
      storage: layerPostgres({ url }),
      store: EventStore.layerRuntime({ entities, prepare: process.prepare }),
    }),
  }),
)

/** Credits an account, once it was paid for, and tells of it. */
const makeAction = (provider: PaymentProvider, repeat: "keyed" | "never", process: Process) =>
  Action.make({
    name: "credit",
    on: Deposited,
    calls: { pay: provider.pay(repeat, process) },
    retry: AT_ONCE,
    run: ({ event: { payload }, em, emit, calls }) =>
      Effect.gen(function* () {
        const account = yield* Effect.tryPromise(() => em.findOneOrFail(Account, "a"))
        const { number } = yield* calls.pay({ to: payload.id })
        account.balance = `${BigInt(account.balance) + payload.amount}`
        em.create(Credit, { id: payload.id, amount: `${payload.amount}` })
        yield* emit(Noted, { text: `${number}` })
      }),
  })

type Check = (provider: PaymentProvider, parked: boolean, rows: ReadonlyArray<any>, at: number) => void

/** A life ends before its `at`-th statement, and another goes on; answers false when there was none to end before. */
const crashAt = Effect.fnUntraced(function* (
  make: Effect.Effect<Crashing, never, Scope.Scope>,
  at: number,
  repeat: "keyed" | "never",
  check: Check,
) {
  const { world } = yield* make
  const provider = new PaymentProvider()
  const crashed = yield* Effect.scoped(
    Effect.gen(function* () {
      const process = new Process()
      const started = yield* start(world(process), [makeAction(provider, repeat, process)], {
        settings: { drainTimeoutMs: 1 },
      })
      yield* started.sql("insert into accounts (id, balance) values ('a', '0')")
      process.ends = process.statements + at
      yield* Effect.exit(started.actions.emit(Deposited, { id: "one", amount: 1n }))
      while (!process.hasEnded) {
        const page = yield* Effect.exit(started.actions.list())
        const state = page._tag === "Success" ? page.value.deliveries[0]?.state : undefined
        if (state === "succeeded" || state === "parked") return false
        yield* Effect.sleep(1)
      }
      return true
    }),
  )
  if (!crashed) return false
  yield* Effect.scoped(
    Effect.gen(function* () {
      const process = new Process()
      const started = yield* start(world(process), [makeAction(provider, repeat, process)])
      // The process of these tests has not ended: its leases are let run out.
      yield* started.sql("update blockwatcher_action_deliveries set lease_until = 1 where state = 'running'")
      const first = Effect.map(started.actions.list(), ({ deliveries }) => deliveries[0])
      // Nothing, where not even the event was committed.
      if ((yield* first) === undefined) return
      yield* waitUntil(
        `the delivery is over, which ended at ${at}`,
        Effect.map(first, (delivery) => delivery?.state === "succeeded" || delivery?.state === "parked").pipe(
          Effect.orDie,
        ),
      )
      const delivery = yield* first
      const rows = yield* started.sql(`select a.balance, (select count(*) from credits) as credits,
          (select count(*) from blockwatcher_events where type = 'noted') as noted from accounts a`)
      check(provider, delivery!.state === "parked", rows, at)
    }),
  )
  return true
}, Effect.scoped)

/** Lives end before one statement more each; answers after how many none was left to end before. */
const crashEverywhere = Effect.fnUntraced(function* (
  make: Effect.Effect<Crashing, never, Scope.Scope>,
  every: number,
  repeat: "keyed" | "never",
  check: Check,
) {
  for (let at = 1; ; at += isSoak ? 1 : every) {
    if (!(yield* crashAt(make, at, repeat, check))) return at
  }
})

const ONCE = { balance: "1", credits: 1, noted: 1 }
const NEVER = { balance: "0", credits: 0, noted: 0 }
const plain = ([row]: ReadonlyArray<any>) => ({ ...row, credits: Number(row.credits), noted: Number(row.noted) })

describe.each([
  ["the runtime's own SQLite database", sqliteOwn, 1],
  ["another SQLite database", sqliteAnother, 2],
  // A server takes its time to make a database.
  ["the runtime's own PostgreSQL database", postgresOwn, 3],
] as const)("a process that ends at any statement of a run, over %s", (_, make, every) => {
  it.live("leaves every effect made once, in the database and at the provider", () =>
    Effect.gen(function* () {
      const steps = yield* crashEverywhere(make, every, "keyed", ({ effects }, parked, rows, at) => {
        assert.deepStrictEqual([parked, plain(rows)], [false, ONCE], `at ${at}`)
        assert.strictEqual(effects.size, 1, `at ${at}`)
      })
      assert.isAbove(steps, 10)
    }),
  )

  it.live("leaves a call that may never be repeated sent at most once, and parks it when nobody knows", () =>
    Effect.gen(function* () {
      let unknown = 0
      yield* crashEverywhere(make, every, "never", ({ requests }, parked, rows, at) => {
        if (parked) unknown++
        assert.deepStrictEqual(plain(rows), parked ? NEVER : ONCE, `at ${at}`)
        assert.isAtMost(requests.length, 1, `at ${at}`)
      })
      if (every === 1) assert.isAbove(unknown, 0)
    }),
  )
})
