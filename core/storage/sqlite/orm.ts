import type { MikroORM } from "@mikro-orm/core"
import { MikroORM as DatabaseOrm } from "@mikro-orm/sqlite"
import { Effect, type Scope } from "effect"
import { StorageError } from "../error.ts"
import type { OrmOptions } from "../orm-options.ts"
import type { Connection } from "./connection.ts"
import { reasonOf } from "./error.ts"
import { SharedDialect } from "./shared-dialect.ts"

/** A MikroORM with the entities of a program, over the one connection. */
export const openOrm = (
  { native, turn }: Connection,
  path: string,
  options: OrmOptions,
): Effect.Effect<MikroORM, StorageError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => DatabaseOrm.init({ ...options, dbName: path, driverOptions: new SharedDialect(native, turn) }),
      catch: (cause) => new StorageError({ operation: "orm", reason: reasonOf(cause), retryable: false }),
    }),
    (orm) => Effect.promise(() => orm.close(true)),
  )
