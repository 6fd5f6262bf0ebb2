import { Clock, Duration, Effect } from "effect"

/** How many times faster than the machine's the clock of a simulation runs, unless told. */
const SPEED = 20

/** A clock that runs fast, so that the waits of the runtime take little of a test's time. */
export const fastClock = (speed = SPEED): Clock.Clock => {
  const realStart = performance.now()
  const start = Date.now()
  const elapsed = () => (performance.now() - realStart) * speed
  const millis = () => Math.floor(start + elapsed())
  const nanos = () => BigInt(Math.floor(elapsed() * 1_000_000))
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: () => BigInt(start) * 1_000_000n + nanos(),
    currentTimeNanos: Effect.sync(() => BigInt(start) * 1_000_000n + nanos()),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) => {
      const millis = Duration.toMillis(duration)
      if (millis <= 0) return Effect.yieldNow
      if (!Number.isFinite(millis)) return Effect.never
      return Effect.callback((resume) => {
        const timer = setTimeout(() => resume(Effect.void), Math.min(millis / speed, 2 ** 31 - 1))
        return Effect.sync(() => clearTimeout(timer))
      })
    },
  }
}
