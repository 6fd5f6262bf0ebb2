import type { MikroORM } from "@mikro-orm/postgresql"
import { Effect } from "effect"

const LONGEST = "2 seconds"

/**
 * Closes a MikroORM whose work is done. A connection that broke in a COMMIT or ROLLBACK never comes back to its pool, which
 * waits for it: nobody else has to.
 */
export const closeOrm = (orm: Pick<MikroORM, "close">): Effect.Effect<void> =>
  Effect.promise(() => orm.close(true)).pipe(Effect.interruptible, Effect.timeoutOption(LONGEST), Effect.asVoid)
