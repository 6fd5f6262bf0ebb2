import { Cause, Effect, Predicate } from "effect"
import { GraphQLError } from "graphql"
import type {
  ActionNotFound,
  DeliveryNotFound,
  DeliveryRefused,
  InvalidCursor,
  ResultInvalid,
} from "../../core/actions/error.ts"
import type { StoreFailed } from "../../core/actions/store/error.ts"
import type {
  Conflict,
  InvalidPosition,
  NotFound,
  NotReplayable,
  Refused,
  StalePosition,
} from "../../core/engine/error.ts"
import type { SourceError } from "../../core/plugin/error.ts"
import type { NotOwner, StorageError } from "../../core/storage/error.ts"

/** The errors that the engine's services answer with. */
export type EngineError =
  | Refused
  | Conflict
  | NotFound
  | NotReplayable
  | StalePosition
  | InvalidPosition
  | NotOwner
  | StorageError
  | SourceError
  | ActionNotFound
  | DeliveryNotFound
  | DeliveryRefused
  | InvalidCursor
  | ResultInvalid
  | StoreFailed

const codes = {
  Refused: "INVALID",
  Conflict: "CONFLICT",
  NotFound: "NOT_FOUND",
  StalePosition: "STALE_POSITION",
  InvalidPosition: "INVALID_POSITION",
  NotOwner: "NOT_OWNER",
  StorageError: "STORAGE_UNAVAILABLE",
  SourceUnavailable: "SOURCE_UNAVAILABLE",
  SourceRefused: "SOURCE_REFUSED",
  ActionNotFound: "NOT_FOUND",
  DeliveryNotFound: "NOT_FOUND",
  DeliveryRefused: "CONFLICT",
  InvalidCursor: "INVALID_POSITION",
  ResultInvalid: "INVALID",
  StoreFailed: "STORAGE_UNAVAILABLE",
} as const satisfies Record<Exclude<EngineError["_tag"], "NotReplayable">, string>

const extensions = (error: EngineError): Record<string, unknown> => {
  switch (error._tag) {
    case "Refused":
    case "ResultInvalid":
      return { code: codes[error._tag], problems: error.problems }
    case "StalePosition":
      return { code: codes.StalePosition, oldest: error.oldest }
    case "NotReplayable":
      return { code: error.code }
    default:
      return { code: codes[error._tag] }
  }
}

/** A known error as clients see it: its message, and `extensions.code`. */
export const toGraphQLError = (error: EngineError): GraphQLError =>
  new GraphQLError(error.message, { extensions: extensions(error) })

/** A defect: what clients see of it (a reference into the log, nothing of what happened), and the log entry to write. */
export const maskDefect = (
  cause: Cause.Cause<unknown>,
): { readonly error: GraphQLError; readonly log: Effect.Effect<void> } => {
  const reference = crypto.randomUUID()
  return {
    error: new GraphQLError(`Something went wrong in the server; its log says more under reference ${reference}.`, {
      extensions: { code: "INTERNAL_SERVER_ERROR", reference },
    }),
    log: Effect.logError("an operation failed unexpectedly", cause).pipe(Effect.annotateLogs({ reference })),
  }
}

/** The error that a failed resolver answers with. */
export const fromCause = (cause: Cause.Cause<EngineError | GraphQLError>): Effect.Effect<GraphQLError> => {
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure !== undefined) {
    return Effect.succeed(failure.error instanceof GraphQLError ? failure.error : toGraphQLError(failure.error))
  }
  if (Cause.hasInterruptsOnly(cause)) {
    return Effect.succeed(
      new GraphQLError("The server is shutting down; try again.", { extensions: { code: "UNAVAILABLE" } }),
    )
  }
  const { error, log } = maskDefect(cause)
  return Effect.as(log, error)
}

/** Whether an error was made for clients: by a resolver, the parser, or validation. */
export const isExpected = (error: unknown): error is GraphQLError =>
  error instanceof Error &&
  error.name === "GraphQLError" &&
  (!Predicate.hasProperty(error, "originalError") ||
    error.originalError === undefined ||
    isExpected(error.originalError))
