import { MikroORM } from "@mikro-orm/sqlite"
import { Migrator } from "@mikro-orm/migrations"
import { Effect, type Scope } from "effect"
import { mkdir } from "node:fs/promises"
import { dirname } from "node:path"
import { entities } from "../entities/index.ts"
import { migrations } from "../migrations/index.ts"
import { DatabaseTooNew, DatabaseUnusable, type OpenError } from "../open-error.ts"
import { classify, codeOf, Locked, reasonOf, whileLocked } from "./error.ts"
import type { Native } from "./native.ts"

export interface Opened {
  readonly orm: MikroORM
  readonly native: Native
}

const advise = (code: string): string => {
  if (code.startsWith("SQLITE_NOTADB") || code.startsWith("SQLITE_CORRUPT")) {
    return "The file is no SQLite database or is damaged: name another file, or restore a backup."
  }
  if (code.startsWith("SQLITE_READONLY")) {
    return "Make the file and its folder writable for this user, or name another file."
  }
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    return "Another process holds the file: stop it, or name another file."
  }
  if (code.startsWith("SQLITE_FULL") || code.startsWith("SQLITE_IOERR")) {
    return "Check the disk: it is full or failing."
  }
  return "Check that the path is a file in a folder that this user may write to."
}

const unusable = (database: string, cause: unknown): DatabaseUnusable =>
  new DatabaseUnusable({ database, reason: reasonOf(cause), advice: advise(codeOf(cause)) })

const makeFolder = (path: string): Effect.Effect<void, DatabaseUnusable> =>
  path === ":memory:"
    ? Effect.void
    : Effect.tryPromise({
        try: () => mkdir(dirname(path), { recursive: true }),
        catch: (cause) => unusable(path, cause),
      })

const connect = (path: string): Effect.Effect<Opened, DatabaseUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const orm = await MikroORM.init({
          entities,
          dbName: path,
          // A lock is waited for in Effect; the driver itself would stop the event loop.
          driverOptions: { timeout: 0 },
          extensions: [Migrator],
          // One transaction of our own around all of them takes the lock first: two processes migrate in turn.
          migrations: {
            migrationsList: migrations,
            snapshot: false,
            silent: true,
            transactional: false,
            allOrNothing: false,
          },
          logger: () => {},
        })
        return { orm, native: (await orm.em.getConnection().getNativeClient()) as Native }
      },
      catch: (cause) => unusable(path, cause),
    }),
    ({ orm }) => Effect.promise(() => orm.close(true)),
  )

const configure = (native: Native): void => {
  native.pragma("journal_mode = WAL")
  native.pragma("synchronous = FULL")
  native.pragma("temp_store = MEMORY")
  native.pragma("cache_size = -65536")
}

const migrate = async (orm: MikroORM, native: Native, path: string): Promise<void> => {
  native.exec("BEGIN IMMEDIATE")
  try {
    const known = new Set(migrations.map(({ name }) => name))
    const strange = (await orm.migrator.getExecuted()).map(({ name }) => name).filter((name) => !known.has(name))
    const found = strange.at(-1)
    if (found !== undefined) {
      throw new DatabaseTooNew({ database: path, found, known: migrations.at(-1)!.name })
    }
    await orm.migrator.up()
    native.exec("COMMIT")
  } catch (cause) {
    if (native.inTransaction) native.exec("ROLLBACK")
    throw cause
  }
}

/** Opens the database, creates what is missing (folder, file, tables) and brings it up to date. */
export const open = Effect.fn("Storage.open")(function* (
  path: string,
): Effect.fn.Return<Opened, OpenError, Scope.Scope> {
  yield* makeFolder(path)
  const opened = yield* connect(path)
  yield* Effect.tryPromise({
    try: async () => {
      configure(opened.native)
      await migrate(opened.orm, opened.native, path)
    },
    catch: (cause) => {
      if (cause instanceof DatabaseTooNew) return cause
      const error = classify("open", cause)
      return error instanceof Locked ? error : unusable(path, cause)
    },
  }).pipe(
    whileLocked("open"),
    Effect.catchTag("StorageError", (error) =>
      Effect.fail(new DatabaseUnusable({ database: path, reason: error.reason, advice: advise("SQLITE_BUSY") })),
    ),
    Effect.uninterruptible,
  )
  return opened
})
