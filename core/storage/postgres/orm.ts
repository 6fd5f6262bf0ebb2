import type { MikroORM } from "@mikro-orm/core"
import { MikroORM as DatabaseOrm } from "@mikro-orm/postgresql"
import { Effect, Redacted, type Scope } from "effect"
import type { StorageError } from "../error.ts"
import type { OrmOptions } from "../orm-options.ts"
import { databaseName } from "./address.ts"
import { closeOrm } from "./close-orm.ts"
import { classify, queryFailed } from "./error.ts"
import type { Opened } from "./open.ts"
import { clientOptions } from "./session.ts"

/** A MikroORM with the entities of a program, over connections of its own. */
export const openOrm = ({ url }: Opened, options: OrmOptions): Effect.Effect<MikroORM, StorageError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        DatabaseOrm.init({
          ...options,
          dbName: databaseName(Redacted.value(url)),
          driverOptions: clientOptions(Redacted.value(url), "program"),
        }),
      catch: (cause) => classify("orm", queryFailed(cause)),
    }),
    closeOrm,
  )
