import { Effect, Layer, type Scope } from "effect"
import { beforeAll } from "vitest"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import type { Postgres } from "../../../support/postgres.ts"

/** The name of the database that an address is of. */
export const nameIn = (url: string): string => new URL(url).pathname.slice(1)

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** The statement that makes a copy of a database what the database is now, whatever happened to the copy meanwhile. */
const emptying = async (server: Postgres, database: string): Promise<string> => {
  const read = (statement: string) => server.execute(database, statement)
  const tables = await read("select tablename::text as name from pg_tables where schemaname = 'public'")
  const names = tables.map(({ name }) => name as string)
  const rows = await Promise.all(
    names.map(async (name) => {
      const [first] = await read(`select json_agg(t)::text as rows from "${name}" t`)
      return { name, rows: first!["rows"] as string | null }
    }),
  )
  const sequences = await read("select sequencename::text as name, start_value, last_value from pg_sequences")
  return [
    // Neither triggers nor foreign keys have a say in it.
    "set session_replication_role = replica",
    `do $$ declare strange text; begin
      for strange in select tablename from pg_tables
        where schemaname = 'public' and tablename <> all (array[${names.map(quoted).join(", ")}]::text[])
      loop execute format('drop table %I cascade', strange); end loop;
    end $$`,
    ...names.map((name) => `delete from "${name}"`),
    ...rows.flatMap(({ name, rows }) =>
      rows === null
        ? []
        : [
            `insert into "${name}" overriding system value
              select * from json_populate_recordset(null::"${name}", ${quoted(rows)})`,
          ],
    ),
    ...sequences.map(
      ({ name, start_value, last_value }) =>
        `select setval('"${name}"', ${last_value ?? start_value}, ${last_value !== null})`,
    ),
  ].join(";\n")
}

/**
 * Databases that have the runtime's tables, by their addresses. One that a test is done with is emptied, and goes to the next
 * that asks: that costs a tenth of making one.
 *
 * @param options.prepared what is run before the tables are made; nothing unless set
 */
export const runtimeDatabases = (
  server: () => Postgres,
  options: { readonly prepared?: string } = {},
): Effect.Effect<string, never, Scope.Scope> => {
  const template = "runtime"
  const free: Array<string> = []
  let made = 0
  let empty = ""
  beforeAll(async () => {
    const url = await server().database(template)
    await server().execute(template, options.prepared ?? "")
    await Effect.runPromise(Effect.scoped(Layer.build(layerPostgres({ url }))))
    empty = await emptying(server(), template)
  })
  return Effect.acquireRelease(
    Effect.promise(async () => free.pop() ?? server().database(`${template}_${++made}`, template)),
    (url) =>
      Effect.promise(async () => {
        await server().execute(nameIn(url), empty)
        free.push(url)
      }),
  )
}
