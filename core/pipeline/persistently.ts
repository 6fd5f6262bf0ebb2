import { Cause, Effect } from "effect"

/**
 * Repeats for ever, and goes on after failures and defects, a second later: for what a whole process depends on. The first
 * failure of a row is told.
 */
export const persistently =
  (what: string) =>
  <E>(effect: Effect.Effect<void, E>): Effect.Effect<never> => {
    // Told once: while the database is away, the networks say so too.
    let failing = false
    return effect.pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          failing = false
        }),
      ),
      Effect.catchCause((cause) => {
        const told = failing ? Effect.void : Effect.logWarning(`could not ${what}; trying again`, Cause.squash(cause))
        failing = true
        return Effect.andThen(told, Effect.sleep("1 second"))
      }),
      Effect.forever,
    )
  }
