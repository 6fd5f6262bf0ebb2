import type { EntityManager } from "@mikro-orm/sqlite"
import { Effect, Semaphore } from "effect"
import type { StorageError } from "../error.ts"
import { classify, type Locked, whileLocked } from "./error.ts"
import type { Native } from "./native.ts"
import type { Opened } from "./open.ts"

/**
 * The one connection. Transactions with MikroORM span turns of the event loop, so whoever uses the connection takes its
 * turn: no statement runs inside a transaction that is not its own.
 */
export interface Connection {
  readonly native: Native
  readonly turn: Semaphore.Semaphore
  /** Runs a synchronous piece of work in its turn. */
  readonly run: <A>(operation: string, work: () => A) => Effect.Effect<A, StorageError>
  /** Runs statements of MikroORM in its turn, as one transaction. Nothing is flushed: entities are read only. */
  readonly unit: <A>(operation: string, work: (em: EntityManager) => Promise<A>) => Effect.Effect<A, StorageError>
}

/** Wraps an opened database. */
export const connection = ({ native, orm }: Opened): Connection => {
  const turn = Semaphore.makeUnsafe(1)
  // By hand: after a COMMIT that fails, as on a full disk, MikroORM's own transaction never lets go of the connection.
  const transaction = async <A>(work: (em: EntityManager) => Promise<A>): Promise<A> => {
    native.exec("BEGIN")
    try {
      const result = await work(orm.em.fork({ disableTransactions: true }))
      native.exec("COMMIT")
      return result
    } catch (cause) {
      if (native.inTransaction) native.exec("ROLLBACK")
      throw cause
    }
  }
  return {
    native,
    turn,
    run: (operation, work) =>
      turn
        .withPermits(1)(
          Effect.suspend((): Effect.Effect<ReturnType<typeof work>, StorageError | Locked> => {
            try {
              return Effect.succeed(work())
            } catch (cause) {
              return Effect.fail(classify(operation, cause))
            }
          }),
        )
        .pipe(whileLocked(operation)),
    unit: (operation, work) =>
      turn
        .withPermits(1)(
          // Left half way, its transaction would stay open on the connection.
          Effect.uninterruptible(
            Effect.tryPromise({
              try: () => transaction(work),
              catch: (cause) => classify(operation, cause),
            }),
          ),
        )
        .pipe(whileLocked(operation)),
  }
}
