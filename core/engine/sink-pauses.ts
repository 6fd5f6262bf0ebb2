import { Effect, Schedule, type Scope } from "effect"
import type { SinkRegistry } from "./sink-registry.ts"

/** Pauses sinks for all networks and processes, and lets them go on. */
export interface SinkPauses<E> {
  /** Stores it. To be called within `exclusively`; one that is paused already keeps its reason. */
  readonly set: (sink: string, paused: string | null) => Effect.Effect<void, E>
  /** Pauses a sink whose receiver says that it is gone: here at once, and stored as soon as the database takes it. */
  readonly gone: (sink: string, reason: string) => Effect.Effect<void>
  /** Takes up what is stored. */
  readonly takeUp: (sink: string, paused: string | null) => void
}

/**
 * @param store stores a pause
 * @param exclusively runs a change without another one in between
 * @param scope what is stored later lives in it
 */
export const makeSinkPauses = <E, F>(
  sinks: SinkRegistry,
  store: (sink: string, paused: string | null) => Effect.Effect<void, E>,
  exclusively: (change: Effect.Effect<void, E>) => Effect.Effect<void, F>,
  scope: Scope.Scope,
): SinkPauses<E> => {
  /** Pauses that hold here and are not stored yet. */
  const unstored = new Set<string>()

  const set = Effect.fnUntraced(function* (sink: string, paused: string | null) {
    const handle = sinks.handle(sink)
    const why = paused === null ? null : (handle.paused ?? paused)
    yield* store(sink, why)
    unstored.delete(sink)
    handle.pause(why)
  })

  /** Unless it was resumed or deleted meanwhile. */
  const storeGone = (sink: string, reason: string) =>
    exclusively(
      Effect.suspend(() => {
        if (unstored.has(sink) && sinks.get(sink) !== undefined && sinks.handle(sink).paused === reason) {
          return set(sink, reason)
        }
        unstored.delete(sink)
        return Effect.void
      }),
    )

  return {
    set,
    gone: Effect.fnUntraced(function* (sink, reason) {
      const handle = sinks.handle(sink)
      if (handle.paused !== null || sinks.get(sink) === undefined) return
      unstored.add(sink)
      handle.pause(reason)
      yield* Effect.logError(`sink ${sink} is paused, its receiver is gone: ${reason}; resumeSink lets it go on`)
      const stored = storeGone(sink, reason).pipe(
        Effect.catch((error) =>
          Effect.logWarning(`the pause of sink ${sink} is not stored yet; trying again`, error).pipe(
            Effect.andThen(Effect.retry(storeGone(sink, reason), Schedule.spaced("1 second"))),
          ),
        ),
      )
      yield* Effect.forkIn(stored, scope)
      // The pause interrupts whoever found out: it is on its way into the database all the same.
    }, Effect.uninterruptible),
    takeUp: (sink, paused) => {
      if (!unstored.has(sink)) sinks.handle(sink).pause(paused)
    },
  }
}
