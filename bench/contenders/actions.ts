import { defineEntity, type MikroORM, p } from "@mikro-orm/core"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { Action, Actions, EventStore, EventType, layerPostgres, layerSqlite, type Storage } from "../../core/index.ts"
import { connection } from "../../core/storage/postgres/connection.ts"
import { open as openPostgres } from "../../core/storage/postgres/open.ts"
import { open as openSqlite } from "../../core/storage/sqlite/open.ts"
import { postgres } from "../../test/support/postgres.ts"
import { contend, type Measured, startClock } from "../contender.ts"

/**
 * Runs deliveries to an action that writes one row, and writes the same rows by hand, one transaction a delivery: on SQLite
 * in files of its own, and on a PostgreSQL of its own.
 */
export interface ActionsTask {
  readonly folder: string
  readonly deliveries: number
}

/** Speeds in deliveries, by database. */
export interface ActionSpeeds {
  readonly sqlite: ActionRun
  readonly postgres: ActionRun
}

export interface ActionRun {
  /** `logs` counts deliveries. */
  readonly action: Measured
  readonly byHand: Measured
}

const Credit = defineEntity({
  name: "Credit",
  tableName: "credits",
  properties: { id: p.text().primary(), amount: p.text() },
})

const CREDITS = "create table if not exists credits (id text not null primary key, amount text not null)"

const Deposited = EventType.make({
  name: "deposited",
  version: 1,
  schema: Schema.Struct({ id: Schema.String, amount: Schema.BigInt }),
})

const credit = Action.make({
  name: "credit",
  on: Deposited,
  run: ({ event, em }) =>
    Effect.sync(() => em.create(Credit, { id: event.payload.id, amount: `${event.payload.amount}` })),
})

type Database = Layer.Layer<Storage, unknown>

const prepare = async (orm: MikroORM): Promise<void> => {
  const connection = orm.em.getConnection() as unknown as { execute(statement: string): Promise<unknown> }
  await connection.execute(CREDITS)
}

const start = (database: Database, concurrency: number): Effect.Effect<Actions["Service"], unknown, Scope.Scope> => {
  const settings = { concurrency, drainTimeoutMs: 10_000, retentionMs: 3_600_000 }
  const layer = Actions.layer({ actions: [credit], settings }).pipe(
    Layer.provide(EventStore.layerRuntime({ entities: [Credit], prepare })),
    Layer.provide(database),
  )
  return Effect.map(Layer.build(layer), Context.get(Actions))
}

/** Emits the events while nothing runs. */
const fill = (database: Database, deliveries: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const actions = yield* start(database, 0)
      const emit = (i: number) => actions.emit(Deposited, { id: `deposit-${i}`, amount: 10n ** 18n + BigInt(i) })
      yield* Effect.forEach(Array(deliveries).keys(), emit, { concurrency: 256, discard: true })
    }),
  )

const runAll = (database: Database, deliveries: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const actions = yield* start(database, 16)
      const read = startClock()
      const left = Effect.map(actions.count({ state: "succeeded" }), (count) => deliveries - count)
      while ((yield* left) > 0) yield* Effect.sleep(POLL_MS)
      return read(deliveries)
    }),
  )

/** How often it is looked whether all have run, in ms. */
const POLL_MS = 50

const END = `update blockwatcher_action_deliveries set state = 'succeeded', settled_at = `
const HANDLED = `insert into blockwatcher_handled_deliveries (delivery, handled_at) values `
const CREDITED = `insert into credits (id, amount) values `
const keyOf = (n: number) => n.toString(16).padStart(64, "0")

const byHandOnSqlite = (path: string, deliveries: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { native } = yield* openSqlite(path)
      const [begin, commit] = [native.prepare("BEGIN IMMEDIATE"), native.prepare("COMMIT")]
      const end = native.prepare(`${END} ? where pk = ?`)
      const handled = native.prepare(`${HANDLED} (?, ?)`)
      const credited = native.prepare(`${CREDITED} (?, ?)`)
      const read = startClock()
      for (let n = 1; n <= deliveries; n++) {
        begin.run()
        end.run(1, n)
        credited.run(`deposit-${n}`, `${10 ** 18}`)
        handled.run(keyOf(n), 1)
        commit.run()
      }
      return read(deliveries)
    }),
  )

const byHandOnPostgres = (url: Redacted.Redacted, deliveries: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* connection(yield* openPostgres(url)).session
      const read = startClock()
      for (let n = 1; n <= deliveries; n++) {
        yield* session.say("BEGIN")
        yield* session.run(`${END} $1 where pk = $2`, [1, n])
        yield* session.run(`${CREDITED} ($1, $2)`, [`deposit-${n}`, `${10 ** 18}`])
        yield* session.run(`${HANDLED} ($1, $2)`, [keyOf(n), 1])
        yield* session.say("COMMIT")
      }
      return read(deliveries)
    }),
  )

const measure = Effect.fnUntraced(function* ({ folder, deliveries }: ActionsTask) {
  const server = yield* postgres
  const sqlite = (name: string) => `${folder}/actions-${name}.db`
  const databaseOf = (name: string) =>
    Effect.map(
      Effect.promise(() => server.database(name)),
      Redacted.make,
    )
  const [run, hand] = [yield* databaseOf("run"), yield* databaseOf("hand")]
  for (const name of ["run", "hand"]) yield* fill(layerSqlite({ path: sqlite(name) }), deliveries)
  for (const url of [run, hand]) yield* fill(layerPostgres({ url }), deliveries)
  return {
    sqlite: {
      action: yield* runAll(layerSqlite({ path: sqlite("run") }), deliveries),
      byHand: yield* byHandOnSqlite(sqlite("hand"), deliveries),
    },
    postgres: {
      action: yield* runAll(layerPostgres({ url: run }), deliveries),
      byHand: yield* byHandOnPostgres(hand, deliveries),
    },
  }
})

await contend((task: ActionsTask) => Effect.runPromise(Effect.scoped(measure(task))))
