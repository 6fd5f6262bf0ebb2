import { type EntityManager, IsolationLevel } from "@mikro-orm/postgresql"
import { Effect, Exit, type Scope } from "effect"
import type { StorageError } from "../error.ts"
import { classify, isConflict, type QueryFailed, queryFailed } from "./error.ts"
import { type NativeClient, type NativeResult, type PooledClient, types, type Value } from "./native.ts"
import type { Opened } from "./open.ts"

const CONFLICTS = 5

/** Statements over one connection, in turn. */
export interface Session {
  /** Rows as arrays in the order of the columns. */
  readonly all: <Row extends ReadonlyArray<unknown>>(
    text: string,
    values: ReadonlyArray<Value>,
  ) => Effect.Effect<ReadonlyArray<Row>, QueryFailed>
  /** How many rows were changed. */
  readonly run: (text: string, values: ReadonlyArray<Value>) => Effect.Effect<number, QueryFailed>
  /** Statements without parameters, in one message; answers the rows of the last one. */
  readonly say: <Row extends ReadonlyArray<unknown>>(
    ...statements: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Row>, QueryFailed>
}

/** The connections to the database. One that broke is replaced by the next that is asked for. */
export interface Connection {
  /** A session that ends with the scope; broken or left half way in a transaction it is closed for good. */
  readonly session: Effect.Effect<Session, QueryFailed, Scope.Scope>
  /** Runs one reading statement. */
  readonly read: <A>(
    operation: string,
    work: (session: Session) => Effect.Effect<A, QueryFailed>,
  ) => Effect.Effect<A, StorageError>
  /** Runs one transaction of MikroORM. */
  readonly unit: <A>(operation: string, work: (em: EntityManager) => Promise<A>) => Effect.Effect<A, StorageError>
  /** The same, of reads alone that all see one moment. */
  readonly snapshot: <A>(operation: string, work: (em: EntityManager) => Promise<A>) => Effect.Effect<A, StorageError>
}

const names = new Map<string, string>()

/** A statement's name on every connection. */
const nameOf = (text: string): string => {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = `blockwatcher_${names.size + 1}`
  names.set(text, name)
  return name
}

/** Statements over a connection of the driver. */
export const sessionOn = (client: NativeClient): Session => {
  const prepared = (text: string, values: ReadonlyArray<Value>): Effect.Effect<NativeResult, QueryFailed> =>
    Effect.tryPromise({
      try: async () => {
        const result = await client.query({ name: nameOf(text), text, values: [...values], rowMode: "array", types })
        return result as NativeResult
      },
      catch: queryFailed,
    })
  return {
    all: (text, values) => Effect.map(prepared(text, values), ({ rows }) => rows as Array<any>),
    run: (text, values) => Effect.map(prepared(text, values), ({ rowCount }) => rowCount ?? 0),
    say: (...statements) =>
      Effect.map(
        Effect.tryPromise({
          try: () => client.query({ text: statements.join("; "), rowMode: "array", types }),
          catch: queryFailed,
        }),
        (answer) => (Array.isArray(answer) ? answer.at(-1)! : answer).rows as Array<any>,
      ),
  }
}

/** The connections of an opened database. */
export const connection = ({ orm, pool }: Opened): Connection => {
  // Left half way, a connection would be handed on with a statement on it that no one waits for.
  const client: Effect.Effect<PooledClient, QueryFailed, Scope.Scope> = Effect.acquireRelease(
    Effect.tryPromise({ try: () => pool.connect(), catch: queryFailed }),
    (acquired, exit) => Effect.sync(() => acquired.release(Exit.isFailure(exit))),
  )
  const session = Effect.map(client, sessionOn)

  const transaction = <A>(
    operation: string,
    work: (em: EntityManager) => Promise<A>,
    options: { readonly isolationLevel: IsolationLevel; readonly readOnly?: boolean },
  ) =>
    Effect.tryPromise({ try: () => orm.em.fork().transactional((em) => work(em), options), catch: queryFailed }).pipe(
      Effect.uninterruptible,
      Effect.retry({ times: CONFLICTS, while: isConflict }),
      Effect.mapError((failed) => classify(operation, failed)),
    )

  return {
    session,
    read: (operation, work) =>
      session.pipe(
        Effect.flatMap(work),
        Effect.scoped,
        Effect.mapError((failed) => classify(operation, failed)),
      ),
    unit: (operation, work) => transaction(operation, work, { isolationLevel: IsolationLevel.READ_COMMITTED }),
    snapshot: (operation, work) =>
      transaction(operation, work, { isolationLevel: IsolationLevel.REPEATABLE_READ, readOnly: true }),
  }
}
