import { DatabaseSync } from "node:sqlite"
import { Effect, type Scope } from "effect"
import type { Postgres } from "../../support/postgres.ts"

export type Row = Readonly<Record<string, unknown>>

/** The rows of a database, read from outside. */
export interface Rows {
  readonly query: (sql: string) => Effect.Effect<ReadonlyArray<Row>>
}

/** A database of an exchange: where its runners find it, and its rows. */
export interface Database {
  readonly url: string
  readonly rows: Rows
}

/** An SQLite file that is made by the first runner. */
export const sqliteDatabase = (path: string): Effect.Effect<Database, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync((): { database: DatabaseSync | null } => ({ database: null })),
    (opened) => Effect.sync(() => opened.database?.close()),
  ).pipe(
    Effect.map((opened) => ({
      url: `sqlite:${path}`,
      rows: {
        query: (sql) =>
          Effect.sync(() => {
            opened.database ??= new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
            return opened.database.prepare(sql).all() as ReadonlyArray<Row>
          }),
      },
    })),
  )

/** A database of a PostgreSQL server. */
export const postgresDatabase = (server: Postgres, name: string): Effect.Effect<Database> =>
  Effect.map(
    Effect.promise(() => server.database(name)),
    (url) => ({ url, rows: { query: (sql) => Effect.promise(() => server.execute(name, sql)) } }),
  )
