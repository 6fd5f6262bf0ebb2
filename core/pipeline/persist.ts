import { Effect, Schedule } from "effect"
import type { Held, NotOwner, StorageError } from "../storage/error.ts"
import type { PipelineStatus } from "./status.ts"

const backoff = Schedule.min([Schedule.exponential("20 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

/**
 * Repeats a write until the database takes it: a bookkeeping failure never drops or sends anything, the pipeline waits.
 * What no repetition can mend (another owner, a broken statement) fails.
 */
export const untilStored =
  (status: PipelineStatus) =>
  <A, E extends StorageError | NotOwner | Held, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    write.pipe(
      Effect.tapError((error) => {
        if (error._tag !== "StorageError" || !error.retryable) return Effect.void
        const news = status.storage === null
        status.storage = error.message
        return news ? Effect.logWarning(`${error.message}; the pipeline waits and tries again`) : Effect.void
      }),
      Effect.retry({ schedule: backoff, while: (error) => error._tag === "StorageError" && error.retryable }),
      Effect.tap(() => {
        if (status.storage === null) return Effect.void
        status.storage = null
        return Effect.logInfo("the database takes writes again")
      }),
    )
