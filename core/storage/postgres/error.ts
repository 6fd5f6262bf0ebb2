import { Schema } from "effect"
import { StorageError } from "../error.ts"

/** A statement, or a connection, failed. */
export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", {
  /** SQLSTATE, the system's code of a connection that failed, or an empty string. */
  code: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }

  /** The connection is gone: what it was to do may or may not have been done. */
  get lost(): boolean {
    return isLoss(this)
  }
}

const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

const textOf = (cause: unknown): string => {
  // A name with several addresses fails once for each, and the error of all of them says nothing.
  if (cause instanceof AggregateError && cause.message === "") return cause.errors.map(textOf).join("; ")
  return cause instanceof Error ? cause.message : String(cause)
}

/** What a rejection of the driver, or of MikroORM, says. */
export const queryFailed = (cause: unknown): QueryFailed => {
  const code = codeOf(cause)
  const text = textOf(cause)
  return new QueryFailed({ code, reason: code === "" || text.includes(code) ? text : `${text} (${code})` })
}

const isSqlState = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)
const isOneOf = (code: string, prefixes: ReadonlyArray<string>): boolean => prefixes.some((p) => code.startsWith(p))

// Connection exceptions; the server shuts down, crashed or starts up; it ended a transaction that rested for too long.
const losses = ["0800", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04"]
// What may pass without a change of ours: no room (disk, memory, connections), a lock that was not to be had, a statement
// that was cancelled, a standby that is not promoted yet, a failing disk.
const passing = [...losses, "53", "55P03", "57014", "25006", "40", "58030"]
// The driver has no codes for these.
const driverLoss =
  /^(Connection terminated|Client (has encountered|was closed)|timeout exceeded|timeout expired|Cannot use a pool|no answer)/

const isLoss = ({ code, reason }: QueryFailed): boolean =>
  isSqlState(code) ? isOneOf(code, losses) : code !== "" || driverLoss.test(reason)

export const SERIALIZATION_FAILURE = "40001"
const DEADLOCK_DETECTED = "40P01"

/** Two transactions met; one that is run again finds its way. */
export const isConflict = ({ code }: QueryFailed): boolean =>
  code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED

/** What a failed statement means to the caller of an operation. */
export const classify = (operation: string, failed: QueryFailed): StorageError =>
  new StorageError({
    operation,
    reason: failed.reason,
    retryable: failed.lost || isOneOf(failed.code, passing),
  })
