import { NodeSqliteDialect } from "@mikro-orm/sqlite"
import { Effect, Semaphore } from "effect"
import { isLock, whileLockHeld } from "./error.ts"
import type { Native, Statement, Value } from "./native.ts"

type Driver = ReturnType<NodeSqliteDialect["createDriver"]>
type DatabaseConnection = Awaited<ReturnType<Driver["acquireConnection"]>>
type CompiledQuery = Parameters<DatabaseConnection["executeQuery"]>[0]

interface Result<R> {
  rows: Array<R>
  numAffectedRows?: bigint
  insertId?: bigint
}

const valuesOf = ({ parameters }: CompiledQuery) => parameters as ReadonlyArray<Value>

/** How many statements are kept prepared, those that were run last: the runtime's own are about half as many. */
const PREPARED = 400

/**
 * Kysely's way to the one connection, for a MikroORM of its own: whatever it runs, a statement or a transaction, takes its turn.
 * A transaction takes the lock at its start, since one that has read before could not take it any more.
 */
export class SharedDialect extends NodeSqliteDialect {
  readonly #native: Native
  readonly #turn: Semaphore.Semaphore

  constructor(native: Native, turn: Semaphore.Semaphore) {
    // Opened by its own driver alone, which is not used.
    super(":memory:")
    this.#native = native
    this.#turn = turn
  }

  override createDriver(): Driver {
    const native = this.#native
    const turn = this.#turn
    const shared = new SharedConnection(native)
    const run = (statement: string) => async () => void native.exec(statement)

    /** Others have their turn while another connection holds the lock. */
    const begin = Effect.suspend(() => {
      let waits = false
      return Effect.suspend(() => (waits ? turn.take(1) : Effect.void)).pipe(
        Effect.andThen(Effect.try({ try: () => native.exec("BEGIN IMMEDIATE"), catch: (cause) => cause })),
        Effect.tapError((cause) => {
          waits = isLock(cause)
          return waits ? turn.release(1) : Effect.void
        }),
        whileLockHeld,
        Effect.tapError(() => (waits ? turn.take(1) : Effect.void)),
      )
    })

    return {
      init: async () => {},
      acquireConnection: () => Effect.runPromise(Effect.as(turn.take(1), shared)),
      releaseConnection: async () => void (await Effect.runPromise(turn.release(1))),
      beginTransaction: async () => void (await Effect.runPromise(begin)),
      commitTransaction: run("COMMIT"),
      // SQLite has taken back by itself what it could not commit.
      rollbackTransaction: async () => {
        if (native.inTransaction) native.exec("ROLLBACK")
      },
      savepoint: (_, name) => run(`SAVEPOINT "${name}"`)(),
      rollbackToSavepoint: (_, name) => run(`ROLLBACK TO "${name}"`)(),
      releaseSavepoint: (_, name) => run(`RELEASE "${name}"`)(),
      // The connection is the runtime's.
      destroy: async () => {},
    }
  }
}

class SharedConnection implements DatabaseConnection {
  readonly #native: Native
  readonly #prepared = new Map<string, Statement>()

  constructor(native: Native) {
    this.#native = native
  }

  async executeQuery<R>(query: CompiledQuery): Promise<Result<R>> {
    try {
      return this.#execute(query)
    } catch (cause) {
      if (!isLock(cause)) throw cause
    }
    return Effect.runPromise(whileLockHeld(Effect.try({ try: () => this.#execute<R>(query), catch: (cause) => cause })))
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncGenerator<{ rows: Array<R> }> {
    for (const row of this.#native.prepare<R>(query.sql).iterate(...valuesOf(query))) yield { rows: [row] }
  }

  #execute<R>(query: CompiledQuery): Result<R> {
    const statement = this.#prepare(query) as Statement<R>
    if (statement.reader) return { rows: statement.all(...valuesOf(query)) }
    const { changes, lastInsertRowid } = statement.run(...valuesOf(query))
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  #prepare({ sql, parameters }: CompiledQuery): Statement {
    // MikroORM has written the values into its statements: none of them comes again.
    if (parameters.length === 0) return this.#native.prepare(sql)
    const statement = this.#prepared.get(sql) ?? this.#native.prepare(sql)
    this.#prepared.delete(sql)
    this.#prepared.set(sql, statement)
    if (this.#prepared.size > PREPARED) this.#prepared.delete(this.#prepared.keys().next().value!)
    return statement
  }
}
