import { Clock, Effect, Exit, FiberHandle, type Scope } from "effect"
import type { PipelineFault } from "../pipeline/pipeline.ts"
import type { PluginRefused, SourceRefused, SourceUnavailable } from "../plugin/error.ts"
import type { SourceOutcome } from "../plugin/source.ts"

export type SourceError = PluginRefused | SourceRefused | SourceUnavailable | PipelineFault
export type SourceExit = Exit.Exit<SourceOutcome, SourceError>

/** The one place where a network's source runs, or waits to run again. */
export interface SourceSlot {
  /** Starts a run; one that is under way is interrupted first. */
  readonly start: Effect.Effect<void>
  /** Starts a run after a wait that doubles with each call, until a run lasted long enough to count as healthy. */
  readonly startLater: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
  /** Whether an end that was told is that of the present run, not of one that was replaced or stopped since. */
  readonly isPresent: (run: number) => boolean
}

/** Waits before a source that ended in an error runs again, in ms: doubling from the first to the last. */
const WAIT_MS = { first: 500, last: 30_000 }

/** A run of this length, in ms, shows that its feed had recovered: the waits start anew. */
const HEALTHY_MS = 60_000

export const makeSourceSlot = Effect.fnUntraced(function* <R>(
  run: Effect.Effect<SourceOutcome, SourceError, R>,
  /** Told of each end of a run that was not stopped, with the number of the run. */
  onEnd: (exit: SourceExit, run: number) => Effect.Effect<void>,
): Effect.fn.Return<SourceSlot, never, Scope.Scope | R> {
  const context = yield* Effect.context<R>()
  const slot = yield* FiberHandle.make<void>()
  let failures = 0
  let present = 0

  const runOnce = Effect.gen(function* () {
    const number = ++present
    const startedAt = yield* Clock.currentTimeMillis
    const exit = yield* Effect.exit(run)
    if ((yield* Clock.currentTimeMillis) - startedAt > HEALTHY_MS) failures = 0
    yield* onEnd(exit, number)
  }).pipe(Effect.provideContext(context))

  const stop = Effect.suspend(() => {
    present++
    return FiberHandle.clear(slot)
  })
  const start = Effect.andThen(stop, Effect.asVoid(FiberHandle.run(slot, runOnce)))
  return {
    start,
    stop,
    startLater: Effect.suspend(() => {
      const wait = Math.min(WAIT_MS.last, WAIT_MS.first * 2 ** Math.min(failures++, 10))
      return Effect.asVoid(FiberHandle.run(slot, Effect.andThen(Effect.sleep(wait), runOnce)))
    }),
    isPresent: (run) => run === present,
  }
})
