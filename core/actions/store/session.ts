import type { EntityManager, MikroORM } from "@mikro-orm/core"

export type Database = "sqlite" | "postgres"

/** A value that can be bound. */
export type Value = string | number | null

/** A statement as Kysely takes it. */
interface Query {
  readonly sql: string
  readonly parameters: ReadonlyArray<Value>
  readonly query: object
  readonly queryId: object
}

interface Executor {
  executeQuery(query: Query): Promise<{ readonly rows: ReadonlyArray<any>; readonly numAffectedRows?: bigint }>
}

/** A transaction of Kysely, as MikroORM takes it. */
export type Transaction = Executor

/** The part of Kysely that is used. */
interface TransactionBuilder {
  setIsolationLevel(level: "read committed"): TransactionBuilder
  execute<A>(work: (on: Transaction) => Promise<A>): Promise<A>
}

/** The part of MikroORM's SQL connections that is used. */
interface SqlConnection {
  ensureConnection(): Promise<void>
  getClient(): Executor & { transaction(): TransactionBuilder }
}

/** Statements in one transaction, or each in its own. */
export interface Session {
  readonly database: Database
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

const QUERY_ID = { queryId: "blockwatcher" }

const numbered = (sql: string): string => {
  let place = 0
  return sql.replaceAll("?", () => `$${++place}`)
}

/**
 * Statements with their values beside them, past MikroORM: it writes values into the text, which the database would have to
 * read anew each time.
 */
const sessionOn = (
  database: Database,
  on: Transaction | undefined,
  execute: (query: Query) => ReturnType<Executor["executeQuery"]>,
): Session => {
  const ask = (text: string, parameters: ReadonlyArray<Value> = []) => {
    const sql = database === "postgres" ? numbered(text) : text
    const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] }
    return execute({ sql, parameters, query, queryId: QUERY_ID })
  }
  return {
    database,
    on,
    all: async (sql, values) => (await ask(sql, values)).rows,
    run: async (sql, values) => Number((await ask(sql, values)).numAffectedRows ?? 0),
  }
}

const connectionOf = (em: EntityManager): SqlConnection => em.getConnection() as unknown as SqlConnection

const outside = (connection: SqlConnection, database: Database): Session =>
  sessionOn(database, undefined, async (query) => {
    await connection.ensureConnection()
    return connection.getClient().executeQuery(query)
  })

const inside = (database: Database, on: Transaction): Session =>
  sessionOn(database, on, (query) => on.executeQuery(query))

export const sessionsOf = (orm: MikroORM, database: Database): Sessions => {
  const connection = connectionOf(orm.em)
  // Not MikroORM's own transactions: after a COMMIT or ROLLBACK that fails, they never let go of the connection.
  const begin: Sessions["begin"] = async (work) => {
    await connection.ensureConnection()
    const transaction = connection.getClient().transaction()
    const builder = database === "postgres" ? transaction.setIsolationLevel("read committed") : transaction
    return builder.execute((on) => work(inside(database, on)))
  }
  return {
    any: outside(connection, database),
    begin,
    transaction: (work) =>
      begin(async (session) => {
        if (database === "sqlite") await session.run(TAKE_LOCK)
        return work(session)
      }),
  }
}

/** The transaction that an EntityManager is in. */
export const sessionIn = (em: EntityManager, database: Database): Session =>
  inside(database, em.getTransactionContext() as unknown as Transaction)

/** `(?, ?), (?, ?)`: places for rows of values. */
export const places = (rows: number, columns: number): string =>
  Array.from({ length: rows }, () => `(${Array.from({ length: columns }, () => "?").join(", ")})`).join(", ")
