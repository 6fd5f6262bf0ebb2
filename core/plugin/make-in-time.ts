import { Cause, Effect } from "effect"
import { PluginRefused } from "./error.ts"

/** How long a plugin may take to be built, in ms. */
const LIMIT_MS = 10_000

/** Builds a plugin: one that breaks or takes too long is refused like one that refuses. */
export const makeInTime = <A, R>(make: Effect.Effect<A, PluginRefused, R>): Effect.Effect<A, PluginRefused, R> =>
  make.pipe(
    Effect.timeoutOrElse({
      duration: LIMIT_MS,
      orElse: () => new PluginRefused({ reason: `the plugin was not built within ${LIMIT_MS} ms` }),
    }),
    Effect.catchDefect((defect) => {
      const error = Cause.squash(Cause.die(defect))
      const message = error instanceof Error ? error.message : String(error)
      return new PluginRefused({ reason: `the plugin broke while it was built: ${message}` })
    }),
  )
