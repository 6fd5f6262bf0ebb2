import { assert, describe, it } from "@effect/vitest"
import { MikroORM as Postgres } from "@mikro-orm/postgresql"
import { MikroORM as Sqlite } from "@mikro-orm/sqlite"
import { Effect, Layer } from "effect"
import { EventStore } from "../../../core/actions/event-store.ts"
import { postgresServer } from "../storage/postgres/server.ts"
import { databaseFiles } from "../storage/sqlite/files.ts"
import { entities } from "./program.ts"

const file = databaseFiles()
const postgres = postgresServer()

const TABLES = ["action_deliveries", "events", "handled_deliveries", "migrations", "provider_calls", "runs"]

const kinds = {
  SQLite: {
    open: Effect.sync(() => {
      const dbName = file(`${crypto.randomUUID()}.db`)
      return () => Sqlite.init({ entities, dbName, driverOptions: { timeout: 0 } })
    }),
    tables: "select name from sqlite_master where type = 'table' and name like 'blockwatcher%' order by name",
    references: "select * from pragma_foreign_key_list('blockwatcher_handled_deliveries')",
  },
  PostgreSQL: {
    open: Effect.map(postgres.database, (clientUrl) => () => Postgres.init({ entities, clientUrl })),
    tables: "select tablename as name from pg_tables where tablename like 'blockwatcher%' order by tablename",
    references: "select conname from pg_constraint where contype = 'f'",
  },
}

describe.each(["SQLite", "PostgreSQL"] as const)("a program's own database on %s", (kind) => {
  const { open, tables, references } = kinds[kind]

  const opened = Effect.gen(function* () {
    const init: () => Promise<Sqlite | Postgres> = yield* open
    const connect = Effect.acquireRelease(Effect.promise(init), (orm) => Effect.promise(() => orm.close(true)))
    const orm = yield* connect
    const execute = (statement: string) =>
      Effect.promise(() => orm.em.getConnection().execute<ReadonlyArray<any>>(statement))
    return { connect, orm, execute }
  })

  it.live("gets the tables of events once, also when several processes start at once, and keeps what they hold", () =>
    Effect.gen(function* () {
      const { connect, orm, execute } = yield* opened
      const others = [yield* connect, yield* connect]
      yield* Effect.forEach([orm, ...others], (one) => Layer.build(Layer.fresh(EventStore.layer(one))), {
        concurrency: "unbounded",
      })
      const names = (yield* execute(tables)).map(({ name }) => name)
      assert.deepStrictEqual(
        names,
        TABLES.map((name) => `blockwatcher_${name}`),
      )
      assert.deepStrictEqual(yield* execute(references), [])
      yield* execute("insert into blockwatcher_handled_deliveries (delivery, handled_at) values ('a', 0)")
      yield* Layer.build(Layer.fresh(EventStore.layer(orm)))
      assert.lengthOf(yield* execute("select * from blockwatcher_handled_deliveries"), 1)
    }),
  )

  it.live("that a newer version wrote is refused, and left as it is", () =>
    Effect.gen(function* () {
      const { orm, execute } = yield* opened
      yield* Layer.build(EventStore.layer(orm))
      yield* execute("insert into blockwatcher_migrations (name, executed_at) values ('0099-later', 0)")
      const error = yield* Effect.flip(Layer.build(Layer.fresh(EventStore.layer(orm, { name: "books" }))))
      assert.match(
        error.message,
        /^event store books cannot be used: it was written by a newer version: it holds migration '0099-later'.* Start the newer version/,
      )
    }),
  )
})

describe("an event store", () => {
  it.live("is not called as the runtime's own database is, nor what cannot stand in an id", () =>
    Effect.gen(function* () {
      const orm = yield* Effect.promise(() => Sqlite.init({ entities, dbName: ":memory:" }))
      yield* Effect.addFinalizer(() => Effect.promise(() => orm.close(true)))
      const names = ["runtime", "a:b"]
      const errors = yield* Effect.forEach(names, (name) => Effect.flip(Layer.build(EventStore.layer(orm, { name }))))
      assert.deepStrictEqual(
        errors.map(({ _tag }) => _tag),
        ["DefinitionInvalid", "DefinitionInvalid"],
      )
    }),
  )
})
