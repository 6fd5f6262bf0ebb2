import type { EntityManager, MikroORM } from "@mikro-orm/core"

/** A value that can be bound. */
export type Value = string | number | null

/** A transaction of Kysely, as MikroORM takes it. */
export type Transaction = { readonly [key: string]: never }

/** The part of Kysely that is used. */
interface TransactionBuilder {
  setIsolationLevel(level: "read committed"): TransactionBuilder
  execute<A>(work: (on: Transaction) => Promise<A>): Promise<A>
}

/** The part of MikroORM's SQL connections that is used. */
interface SqlConnection {
  ensureConnection(): Promise<void>
  execute(query: string, values: ReadonlyArray<Value>, method: "all" | "run", on?: Transaction): Promise<unknown>
  getClient(): { transaction(): TransactionBuilder }
}

/** Statements in one transaction, or each in its own. */
export interface Session {
  readonly on: Transaction | undefined
  readonly all: <Row>(sql: string, values?: ReadonlyArray<Value>) => Promise<ReadonlyArray<Row>>
  /** Answers how many rows were changed. */
  readonly run: (sql: string, values?: ReadonlyArray<Value>) => Promise<number>
}

/** Statements over the connections of a MikroORM. */
export interface Sessions {
  readonly any: Session
  /** Commits what `work` did, or takes it back when it throws. */
  readonly begin: <A>(work: (session: Session) => Promise<A>) => Promise<A>
  /** The same, with the lock for writing from the start on. */
  readonly transaction: <A>(work: (session: Session) => Promise<A>) => Promise<A>
}

/** A transaction of SQLite that reads first cannot write any more if someone else wrote meanwhile: this one writes first. */
const TAKE_LOCK = "update blockwatcher_runs set number = number where subject = ''"

const sessionOn = (connection: SqlConnection, on?: Transaction): Session => ({
  on,
  all: async <Row>(sql: string, values: ReadonlyArray<Value> = []) =>
    (await connection.execute(sql, values, "all", on)) as ReadonlyArray<Row>,
  run: async (sql, values = []) =>
    ((await connection.execute(sql, values, "run", on)) as { readonly affectedRows: number }).affectedRows,
})

const connectionOf = (em: EntityManager): SqlConnection => em.getConnection() as unknown as SqlConnection

export const sessionsOf = (orm: MikroORM, database: "sqlite" | "postgres"): Sessions => {
  const connection = connectionOf(orm.em)
  // Not MikroORM's own transactions: after a COMMIT or ROLLBACK that fails, they never let go of the connection.
  const begin: Sessions["begin"] = async (work) => {
    await connection.ensureConnection()
    const transaction = connection.getClient().transaction()
    const builder = database === "postgres" ? transaction.setIsolationLevel("read committed") : transaction
    return builder.execute((on) => work(sessionOn(connection, on)))
  }
  return {
    any: sessionOn(connection),
    begin,
    transaction: (work) =>
      begin(async (session) => {
        if (database === "sqlite") await session.run(TAKE_LOCK)
        return work(session)
      }),
  }
}

/** The transaction that an EntityManager is in. */
export const sessionIn = (em: EntityManager): Session =>
  sessionOn(connectionOf(em), em.getTransactionContext() as Transaction | undefined)

/** `(?, ?), (?, ?)`: places for rows of values. */
export const places = (rows: number, columns: number): string =>
  Array.from({ length: rows }, () => `(${Array.from({ length: columns }, () => "?").join(", ")})`).join(", ")
