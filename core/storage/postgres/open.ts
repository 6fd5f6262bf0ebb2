import { Migrator } from "@mikro-orm/migrations"
import { MikroORM } from "@mikro-orm/postgresql"
import { Effect, Redacted, type Scope } from "effect"
import { entities } from "../entities/index.ts"
import { migrations } from "../migrations/index.ts"
import { DatabaseTooNew, DatabaseUnusable, type OpenError } from "../open-error.ts"
import { databaseName, shownAddress } from "./address.ts"
import { closeOrm } from "./close-orm.ts"
import { queryFailed } from "./error.ts"
import type { NativeClient, NativePool } from "./native.ts"
import { clientOptions, type ClientUse } from "./session.ts"

export interface Opened {
  readonly orm: MikroORM
  readonly pool: NativePool
  readonly url: Redacted.Redacted
}

/** Takes note of each connection that is made. */
type OnConnect = (client: NativeClient) => void

/** Any number will do that no other program takes its advisory lock by. */
const MIGRATING = 7_042_651_931

const advise = (code: string): string => {
  if (code.startsWith("28")) return "Check the user and the password, and that the server lets this user in from here."
  if (code === "3D000") return "Create the database (CREATE DATABASE …), or name another one."
  if (code === "42501") return "Let this user create tables in the database (GRANT CREATE ON SCHEMA public TO …)."
  if (code === "53300") return "The server has no connection left: raise its max_connections, or stop what holds them."
  if (code === "53100") return "The server's disk is full: make room on it."
  if (code === "25006") return "The server only reads, such as a standby does: name the primary server."
  if (code === "57P03") return "The server is starting or shutting down: try again in a moment."
  return "Check that the server runs at this address and can be reached from here."
}

const unusable = (url: string, cause: unknown): DatabaseUnusable => {
  const { code, reason } = queryFailed(cause)
  return new DatabaseUnusable({ database: shownAddress(url), reason, advice: advise(code) })
}

const connect = (
  url: Redacted.Redacted,
  use: ClientUse,
  onConnect?: OnConnect,
): Effect.Effect<Opened, DatabaseUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const orm = await MikroORM.init({
          entities,
          dbName: databaseName(Redacted.value(url)),
          driverOptions: {
            ...clientOptions(Redacted.value(url), use),
            ...(onConnect === undefined ? {} : { onConnect }),
          },
          extensions: [Migrator],
          migrations: { migrationsList: migrations, snapshot: false, silent: true, disableForeignKeys: false },
          logger: () => {},
        })
        return { orm, url, pool: (await orm.em.getConnection().getNativeClient()) as unknown as NativePool }
      },
      catch: (cause) => unusable(Redacted.value(url), cause),
    }),
    ({ orm }) => closeOrm(orm),
    { interruptible: true },
  )

/** Brings the tables up to date. Processes that start together take turns. */
const migrate = async ({ orm, pool, url }: Opened): Promise<void> => {
  const turn = await pool.connect()
  try {
    await turn.query({ text: "SELECT pg_advisory_lock($1)", values: [MIGRATING] })
    const known = new Set(migrations.map(({ name }) => name))
    const found = (await orm.migrator.getExecuted()).map(({ name }) => name).findLast((name) => !known.has(name))
    if (found !== undefined) {
      const database = shownAddress(Redacted.value(url))
      throw new DatabaseTooNew({ database, found, known: migrations.at(-1)!.name })
    }
    await orm.migrator.up()
  } finally {
    // The lock goes with its connection.
    turn.release(true)
  }
}

/**
 * The same over connections of its own, since a change of large tables may take as long as it likes. Whoever gives it up
 * breaks them, whatever they wait for: a server that is silent would keep the program from ending.
 */
const migrated = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const clients = new Set<NativeClient>()
  let isGivenUp = false
  const takeNote: OnConnect = (client) => {
    clients.add(client)
    if (isGivenUp) client.connection.stream.destroy()
  }
  yield* connect(url, "migrations", takeNote).pipe(
    Effect.flatMap((opened) =>
      Effect.tryPromise({
        try: () => migrate(opened),
        catch: (cause) => (cause instanceof DatabaseTooNew ? cause : unusable(Redacted.value(url), cause)),
      }),
    ),
    Effect.onInterrupt(() =>
      Effect.sync(() => {
        isGivenUp = true
        for (const { connection } of clients) connection.stream.destroy()
      }),
    ),
  )
}, Effect.scoped)

/** Connects, creates the tables or brings them up to date, and answers a pool of connections. */
export const open = Effect.fn("Storage.open")(function* (
  url: Redacted.Redacted,
): Effect.fn.Return<Opened, OpenError, Scope.Scope> {
  if (databaseName(Redacted.value(url)) === "") {
    return yield* new DatabaseUnusable({
      database: shownAddress(Redacted.value(url)),
      reason: "its address names no database",
      advice: "Write it as postgres://user:password@host:port/database, with special characters percent-encoded.",
    })
  }
  yield* migrated(url)
  return yield* connect(url, "rows")
})
