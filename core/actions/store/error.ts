import { OptimisticLockError } from "@mikro-orm/core"
import { Schema } from "effect"

/**
 * What a failed transaction means. `conflict`: it met another one, and what it rested on is to be read again. `locked`,
 * `away`: nothing was wrong with it, the database did not take it. `refused`: it is wrong, and is so again.
 */
export type Failure = "conflict" | "locked" | "away" | "refused"

/** A store's database did not do what it was asked for; nothing of it was written. */
export class StoreFailed extends Schema.TaggedError<StoreFailed>()("StoreFailed", {
  store: Schema.String,
  operation: Schema.String,
  failure: Schema.Literals(["conflict", "locked", "away", "refused"]),
  reason: Schema.String,
  cause: Schema.Defect(),
}) {
  override get message() {
    return `event store ${this.store}: ${this.operation}: ${this.reason}`
  }
}

// Serialization failures, deadlocks, a lock that was not to be had in time, a row that another one wrote first.
const conflicts = new Set([
  "40001",
  "40P01",
  "55P03",
  "23505",
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
])
const locks = ["SQLITE_BUSY", "SQLITE_LOCKED"]
// What may pass by itself: a full or failing disk, a server that is away, shuts down, or has no connection left.
const passing = ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "53", "57", "58"]
const lost = ["08", "25P03", "25P04", "ECONN", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_"]
// The driver has no codes for these.
const lostInWords = /^(Connection terminated|Client (has encountered|was closed)|timeout expired|Cannot use a pool)/

const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

const beginsWith = (code: string, starts: ReadonlyArray<string>): boolean =>
  starts.some((start) => code.startsWith(start))

const failureOf = (cause: unknown): Failure => {
  if (cause instanceof OptimisticLockError) return "conflict"
  const code = codeOf(cause)
  if (conflicts.has(code)) return "conflict"
  if (beginsWith(code, locks)) return "locked"
  if (beginsWith(code, passing) || beginsWith(code, lost)) return "away"
  return cause instanceof Error && lostInWords.test(cause.message) ? "away" : "refused"
}

/** What was thrown in the course of an operation, said in one line. */
export const storeFailed = (store: string, operation: string, cause: unknown): StoreFailed => {
  if (cause instanceof StoreFailed) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  // MikroORM puts the statement, with its values, in front of what the database said.
  const reason = cause instanceof Error && "query" in cause ? text.slice(text.lastIndexOf(" - ") + 1) : text
  return new StoreFailed({ store, operation, failure: failureOf(cause), reason: reason.trim(), cause })
}
