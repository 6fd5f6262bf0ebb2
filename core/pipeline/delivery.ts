import { Cause, Deferred, Effect, Random } from "effect"
import type { Retry } from "../model/resource.ts"
import type { SinkEvent } from "../model/sink-event.ts"
import { type DeliveryError, Transient } from "../plugin/error.ts"
import type { Delivery, Sink } from "../plugin/sink.ts"
import { backoffMs } from "./backoff.ts"

/** How the attempts of one delivery ended; `reason` carries its class as prefix. */
export type DeliveryResult =
  | { readonly _tag: "Delivered"; readonly attempts: number }
  | { readonly _tag: "Dead"; readonly attempts: number; readonly reason: string }
  /** The pipeline drains: no outcome, the row stays owed. */
  | { readonly _tag: "GivenUp" }

const classOf = (error: DeliveryError): string => {
  switch (error._tag) {
    case "Transient":
      return `transient: ${error.reason}`
    case "RateLimited":
      return `rate_limited: ${error.reason}`
    case "Permanent":
      return `permanent: ${error.reason}`
    case "TooLarge":
      return `permanent: too large: ${error.reason}`
  }
}

/** One attempt: bounded in time, and a defect of the plugin is a failed attempt, never a crash of the worker. */
const attemptOnce = (sink: Sink, event: SinkEvent, delivery: Delivery) =>
  Effect.suspend(() => sink.deliver(event, delivery)).pipe(
    Effect.timeoutOrElse({
      duration: sink.timeoutMs,
      orElse: () => Effect.fail(new Transient({ reason: `no outcome within ${sink.timeoutMs} ms` })),
    }),
    Effect.catchDefect((defect) => Effect.fail(new Transient({ reason: `defect in the sink: ${messageOf(defect)}` }))),
  )

const messageOf = (defect: unknown): string => {
  const error = Cause.squash(Cause.die(defect))
  return error instanceof Error ? error.message : String(error)
}

/**
 * Delivers one event with its sink's retry policy. Fails never; ends without an outcome only when the pipeline drains
 * after a failed attempt, because a shut-down is no attempt.
 *
 * @param onFailure told of every failed attempt
 */
export const deliverWithRetry = Effect.fnUntraced(function* (
  sink: Sink,
  retry: Retry,
  event: SinkEvent,
  delivery: Omit<Delivery, "attempt">,
  draining: Deferred.Deferred<void>,
  onFailure: (reason: string, attempt: number) => Effect.Effect<void>,
): Effect.fn.Return<DeliveryResult> {
  for (let attempt = 1; ; attempt++) {
    const failure = yield* Effect.match(attemptOnce(sink, event, { ...delivery, attempt }), {
      onFailure: (error) => error,
      onSuccess: () => null,
    })
    if (failure === null) return { _tag: "Delivered", attempts: attempt }
    const reason = classOf(failure)
    yield* onFailure(reason, attempt)
    const final = failure._tag === "Permanent" || failure._tag === "TooLarge" || attempt >= retry.maxAttempts
    if (final) return { _tag: "Dead", attempts: attempt, reason }
    const retryAfter = failure._tag === "RateLimited" ? failure.retryAfterMs : null
    const wait = Effect.sleep(backoffMs(retry, attempt, yield* Random.next, retryAfter))
    yield* Effect.raceFirst(wait, Deferred.await(draining))
    if (Deferred.isDoneUnsafe(draining)) return { _tag: "GivenUp" }
  }
})
