import type { MikroORM } from "@mikro-orm/core"
import { Context, Effect, Layer, Schema } from "effect"
import type { StorageError } from "../storage/error.ts"
import type { OrmOptions } from "../storage/orm-options.ts"
import { Storage } from "../storage/storage.ts"
import { DefinitionInvalid, nameProblems } from "./definition-invalid.ts"
import { createEventTables, type EventTablesError } from "./store/create-tables.ts"
import { RUNTIME } from "./store/store.ts"

export interface EventStoreOptions {
  /** Stored with each delivery: it names this database among those of the program. `program` unless set. */
  readonly name?: string
  /** The property that says whom an entity belongs to; entities without it belong to nobody. `tenant` unless set. */
  readonly tenantProperty?: string
}

/** The database that a program's actions write. */
export class EventStore extends Context.Service<
  EventStore,
  {
    readonly name: string
    readonly orm: MikroORM
    readonly database: "sqlite" | "postgres"
    readonly tenantProperty: string
  }
>()("blockwatcher/EventStore") {
  /**
   * A database of the program, by its MikroORM with the driver for SQLite or PostgreSQL. It gets tables named
   * `blockwatcher_…`, which are brought up to date here. A database of SQLite is best opened with
   * `driverOptions: { timeout: 0 }`: a lock is waited for without stopping the program.
   */
  static readonly layer = (
    orm: MikroORM<any, any, any>,
    { name = "program", tenantProperty = "tenant" }: EventStoreOptions = {},
  ): Layer.Layer<EventStore, EventTablesError | DefinitionInvalid> =>
    Layer.effect(
      EventStore,
      Effect.gen(function* () {
        const problems = [...nameProblems(name)]
        if (name === RUNTIME) problems.push({ path: "name", message: `"${RUNTIME}" is the runtime's own database` })
        if (problems.length > 0) return yield* new DefinitionInvalid({ what: `event store "${name}"`, problems })
        const database = yield* createEventTables(name, orm)
        return EventStore.of({ name, orm: orm as MikroORM, database, tenantProperty })
      }),
    )

  /**
   * The runtime's own database, with the entities of the program. Its tables are the program's to make: `prepare` gets the
   * MikroORM before anything runs, and is where migrations go (`orm.migrator.up()`). They are recorded in the table
   * `program_migrations` unless `migrations.tableName` is set: the runtime's own list stands in the same database.
   */
  static readonly layerRuntime = ({
    tenantProperty = "tenant",
    prepare = async () => {},
    ...options
  }: OrmOptions & {
    readonly tenantProperty?: string
    readonly prepare?: (orm: MikroORM) => Promise<unknown>
  }): Layer.Layer<EventStore, StorageError | PrepareFailed, Storage> =>
    Layer.effect(
      EventStore,
      Effect.gen(function* () {
        const storage = yield* Storage
        const migrations = { tableName: "program_migrations", ...options.migrations }
        const orm = yield* storage.orm({ ...options, migrations })
        yield* Effect.tryPromise({
          try: () => prepare(orm),
          catch: (cause) =>
            new PrepareFailed({ reason: cause instanceof Error ? cause.message : String(cause), cause }),
        })
        return EventStore.of({ name: RUNTIME, orm, database: storage.database, tenantProperty })
      }),
    )
}

/** The program's own preparation of its tables failed. */
export class PrepareFailed extends Schema.TaggedError<PrepareFailed>()("PrepareFailed", {
  reason: Schema.String,
  cause: Schema.Defect(),
}) {
  override get message() {
    return `the program's tables in the runtime's database were not prepared: ${this.reason}`
  }
}
