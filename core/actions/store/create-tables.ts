import type { MikroORM } from "@mikro-orm/core"
import { Effect, Schedule, Schema } from "effect"
import { eventTables } from "../../storage/event-tables.ts"
import { type Dialect, dialects } from "../../storage/migrations/dialect.ts"
import { storeFailed, type StoreFailed } from "./error.ts"
import { type Session, sessionsOf } from "./session.ts"

/** The database cannot hold events. `reason` says what happened, `advice` what to do. */
export class EventStoreUnusable extends Schema.TaggedError<EventStoreUnusable>()("EventStoreUnusable", {
  store: Schema.String,
  reason: Schema.String,
  advice: Schema.String,
}) {
  override get message() {
    return `event store ${this.store} cannot be used: ${this.reason}. ${this.advice}`
  }
}

export type EventTablesError = EventStoreUnusable | StoreFailed

/** What made the tables what they are, in order. An entry is never changed once it was released. */
const migrations: ReadonlyArray<{
  readonly name: string
  readonly statements: (dialect: Dialect) => ReadonlyArray<string>
}> = [{ name: "0001-events", statements: eventTables }]

/** Any number will do that no other program takes its advisory lock by. */
const MIGRATING = 7_042_651_932

class TooNew extends Error {}

const migrate = async (session: Session, dialect: Dialect): Promise<void> => {
  if (dialect.database === "postgres") await session.all(`select pg_advisory_xact_lock(${MIGRATING})`)
  await session.run(
    `create table if not exists blockwatcher_migrations (name ${dialect.text} not null primary key, executed_at bigint not null)`,
  )
  const rows = await session.all<{ readonly name: string }>("select name from blockwatcher_migrations order by name")
  const executed = new Set(rows.map(({ name }) => name))
  const strange = rows.findLast(({ name }) => !migrations.some((known) => known.name === name))
  if (strange !== undefined) throw new TooNew(strange.name)
  for (const { name, statements } of migrations) {
    if (executed.has(name)) continue
    for (const statement of statements(dialect)) await session.run(statement)
    await session.run("insert into blockwatcher_migrations (name, executed_at) values (?, ?)", [name, Date.now()])
  }
}

const whileLocked = Schedule.min([Schedule.exponential("5 millis"), Schedule.spaced("100 millis")]).pipe(
  Schedule.upTo({ duration: "10 seconds" }),
)

/** Makes the tables of events in a program's database, or brings them up to date. Processes that start together take turns. */
export const createEventTables = Effect.fnUntraced(function* (
  store: string,
  orm: MikroORM,
): Effect.fn.Return<"sqlite" | "postgres", EventTablesError> {
  const driver = orm.em.getDriver().constructor.name
  const database = driver === "PostgreSqlDriver" ? "postgres" : /sqlite/i.test(driver) ? "sqlite" : undefined
  if (database === undefined) {
    return yield* new EventStoreUnusable({
      store,
      reason: `its MikroORM has the driver ${driver}`,
      advice: "Use that of @mikro-orm/sqlite or of @mikro-orm/postgresql.",
    })
  }
  yield* Effect.tryPromise({
    try: () => sessionsOf(orm, database).begin((session) => migrate(session, dialects[database])),
    catch: (cause) =>
      cause instanceof TooNew
        ? new EventStoreUnusable({
            store,
            reason: `it was written by a newer version: it holds migration '${cause.message}', this version knows those up to '${migrations.at(-1)!.name}'`,
            advice: "Start the newer version, or restore a backup made before the upgrade.",
          })
        : storeFailed(store, "create its tables", cause),
  }).pipe(
    Effect.retry({
      while: (error) => error._tag === "StoreFailed" && error.failure === "locked",
      schedule: whileLocked,
    }),
    Effect.uninterruptible,
  )
  return database
})
