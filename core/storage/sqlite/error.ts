import { Effect, Schedule, Schema } from "effect"
import { StorageError } from "../error.ts"

/** Another connection holds the lock at this moment. */
export class Locked extends Schema.TaggedError<Locked>()("Locked", { reason: Schema.String }) {}

/** SQLite's result code (`SQLITE_FULL`), or an empty string. */
export const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

export const reasonOf = (cause: unknown): string => {
  const code = codeOf(cause)
  const text = cause instanceof Error ? cause.message : String(cause)
  return code === "" ? text : `${text} (${code})`
}

// What may pass without a change of ours: no space, a failing or absent disk, no memory.
const passing = [
  "SQLITE_FULL",
  "SQLITE_IOERR",
  "SQLITE_READONLY",
  "SQLITE_CANTOPEN",
  "SQLITE_NOMEM",
  "SQLITE_INTERRUPT",
]
const locks = ["SQLITE_BUSY", "SQLITE_LOCKED"]

const isOneOf = (code: string, prefixes: ReadonlyArray<string>): boolean => prefixes.some((p) => code.startsWith(p))

export const isLock = (cause: unknown): boolean => isOneOf(codeOf(cause), locks)

/** What a thrown database error means. */
export const classify = (operation: string, cause: unknown): StorageError | Locked =>
  isLock(cause)
    ? new Locked({ reason: reasonOf(cause) })
    : new StorageError({ operation, reason: reasonOf(cause), retryable: isOneOf(codeOf(cause), passing) })

const backoff = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("40 millis")]).pipe(
  Schedule.jittered,
  Schedule.upTo({ duration: "5 seconds" }),
)

/** Tries again for about five seconds while another connection holds the lock; then, as at any other error, fails with it. */
export const whileLockHeld = <A, R>(attempt: Effect.Effect<A, unknown, R>): Effect.Effect<A, unknown, R> =>
  Effect.retry(attempt, { while: isLock, schedule: backoff })

/** Tries again for about five seconds while another connection holds the lock; the event loop stays free meanwhile. */
export const whileLocked =
  (operation: string) =>
  <A, E, R>(attempt: Effect.Effect<A, E | Locked, R>): Effect.Effect<A, Exclude<E, Locked> | StorageError, R> =>
    attempt.pipe(
      Effect.retry({ while: (error) => error instanceof Locked, schedule: backoff }),
      Effect.mapError((error) =>
        error instanceof Locked
          ? new StorageError({
              operation,
              reason: `${error.reason}, held by another connection for 5 s`,
              retryable: true,
            })
          : (error as Exclude<E, Locked>),
      ),
    )
