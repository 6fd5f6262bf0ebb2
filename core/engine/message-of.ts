import { Cause } from "effect"

/** The message of what a cause comes down to. */
export const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}
