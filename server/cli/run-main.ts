import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Console, Effect, Exit, Predicate } from "effect"
import { CliError } from "effect/cli"

/** npm passes on a Ctrl-C that the terminal has sent already: what comes so soon after a signal is the same one. */
const SAME_SIGNAL_MS = 500

/**
 * Runs the program as the process. A failure prints its message, not a stack, and exits with 1; SIGINT and SIGTERM end
 * it in order, with 0; a second one ends it at once.
 */
export const runMain = <E>(program: Effect.Effect<void, E>): void => {
  let first: number | null = null
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.on(signal, () => {
      first ??= performance.now()
      if (performance.now() - first > SAME_SIGNAL_MS) process.exit(code)
    })
  }
  program.pipe(
    Effect.tapCause(report),
    NodeRuntime.runMain({
      disableErrorReporting: true,
      teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1),
    }),
  )
}

const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure === undefined) return Console.error(`blockwatcher failed unexpectedly:\n${Cause.pretty(cause)}`)
  // The command line library has shown its own errors already.
  if (CliError.isCliError(failure.error)) return Effect.void
  const message = Predicate.hasProperty(failure.error, "message") ? failure.error.message : failure.error
  return Console.error(`blockwatcher: ${String(message)}`)
}
