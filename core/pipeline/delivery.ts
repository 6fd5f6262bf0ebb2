import { Cause, Effect, Exit, Fiber, Option, Random, type Tracer } from "effect"
import type { Retry } from "../model/policy.ts"
import type { SinkEvent } from "../model/sink-event.ts"
import { type DeliveryError, Transient } from "../plugin/error.ts"
import type { Delivery, Sink } from "../plugin/sink.ts"
import { inSpan } from "../plugin/tracing.ts"
import { backoffMs } from "./backoff.ts"
import type { Draining } from "./draining.ts"
import type { HeldLease } from "./lease.ts"

/** How the attempts of one delivery ended; `reason` carries its class as prefix. */
export type DeliveryResult =
  | { readonly _tag: "Delivered"; readonly attempts: number }
  /** `judged`: the sink refused this event as such; otherwise it used up its retries. `failure`: of the last attempt, if any. */
  | {
      readonly _tag: "Dead"
      readonly attempts: number
      readonly reason: string
      readonly judged: boolean
      readonly failure: DeliveryError | null
    }
  /** The pipeline drains: no outcome, the row stays owed. */
  | { readonly _tag: "GivenUp"; readonly attempts: number }

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

/** What a failed attempt is taken for: a defect of the plugin is a failed attempt, never a crash of the worker. */
const failureOf = (cause: Cause.Cause<DeliveryError>): DeliveryError => {
  const failure = Cause.findErrorOption(cause)
  if (failure._tag === "Some") return failure.value
  if (Cause.hasInterruptsOnly(cause)) return new Transient({ reason: "the sink interrupted its own attempt" })
  const error = Cause.squash(cause)
  return new Transient({ reason: `defect in the sink: ${error instanceof Error ? error.message : String(error)}` })
}

/**
 * One attempt, bounded in time; null is success. It runs in a fiber of its own that nobody waits for once its time is
 * over: a sink that cannot be interrupted must not hold its worker.
 */
const attemptOnce = Effect.fnUntraced(function* (
  sink: Sink,
  event: SinkEvent,
  delivery: Delivery,
): Effect.fn.Return<DeliveryError | null> {
  const fiber = yield* Effect.forkDetach(
    Effect.suspend(() => sink.deliver(event, delivery)),
    { startImmediately: true },
  )
  const abandon = Effect.sync(() => fiber.interruptUnsafe())
  // A function of the host program is often done by now, and needs no timer.
  const done = fiber.pollUnsafe()
  const exit =
    done === undefined
      ? yield* Effect.timeoutOption(Fiber.await(fiber), sink.timeoutMs).pipe(Effect.onInterrupt(() => abandon))
      : Option.some(done)
  if (Option.isSome(exit)) return Exit.isSuccess(exit.value) ? null : failureOf(exit.value.cause)
  yield* abandon
  return new Transient({ reason: `no outcome within ${sink.timeoutMs} ms` })
})

/** What the spans of a delivery's attempts say of it. */
export interface DeliveryTrace {
  readonly network: string
  readonly sink: string
  /** Of what is delivered, each once; the attempts belong to the present span unless set. */
  readonly parents?: () => ReadonlyArray<Tracer.AnySpan>
}

/** An attempt in a span of its own, if anybody reads it. */
const attemptInSpan = (
  attempt: Effect.Effect<DeliveryError | null>,
  { network, sink, parents }: DeliveryTrace,
  type: SinkEvent["type"],
  delivery: Delivery,
): Effect.Effect<DeliveryError | null> =>
  inSpan(
    "deliver",
    () => ({
      ...(parents === undefined ? {} : { parents: parents() }),
      kind: "client",
      attributes: {
        "blockwatcher.network": network,
        "blockwatcher.sink": sink,
        "blockwatcher.delivery.id": delivery.id,
        "blockwatcher.delivery.type": type,
        "blockwatcher.delivery.attempt": delivery.attempt,
      },
    }),
    (span): Effect.Effect<null, DeliveryError> | typeof attempt =>
      span === null
        ? attempt
        : Effect.flatMap(attempt, (failure) => {
            if (failure === null) return Effect.succeed(null)
            span.attribute("error.type", failure._tag)
            return Effect.fail(failure)
          }),
  ).pipe(Effect.catch(Effect.succeed))

/** What the attempts of a delivery depend on. */
export interface Attempts {
  readonly trace: DeliveryTrace
  readonly retry: Retry
  /** Attempts that earlier runs made: they count, but one more is made in any case. */
  readonly earlier: number
  readonly lease: HeldLease
  readonly draining: Draining
  /** Told of every failed attempt that another one may follow. */
  readonly onRetry: (reason: string, attempt: number) => Effect.Effect<void>
}

/**
 * Delivers one event with its sink's retry policy. Fails never; ends without an outcome only when the pipeline drains
 * after a failed attempt, or while the lease is too short for one, because a shut-down is no attempt. What it answers
 * counts its own attempts alone.
 */
export const deliverWithRetry = Effect.fnUntraced(function* (
  sink: Sink,
  event: SinkEvent,
  delivery: Omit<Delivery, "attempt">,
  { trace, retry, earlier, lease, draining, onRetry }: Attempts,
): Effect.fn.Return<DeliveryResult> {
  for (let made = 1; ; made++) {
    const attempt = earlier + made
    // Another owner may send by the time that an attempt outside the lease ends.
    if (!lease.covers(sink.timeoutMs)) {
      yield* Effect.raceFirst(lease.untilCovers(sink.timeoutMs), draining.begun)
      if (!lease.covers(sink.timeoutMs)) return { _tag: "GivenUp", attempts: made - 1 }
    }
    const next = { ...delivery, attempt }
    const failure = yield* attemptInSpan(attemptOnce(sink, event, next), trace, event.type, next)
    if (failure === null) return { _tag: "Delivered", attempts: made }
    const reason = classOf(failure)
    const judged = failure._tag === "Permanent" || failure._tag === "TooLarge"
    if (judged || attempt >= retry.maxAttempts) return { _tag: "Dead", attempts: made, reason, judged, failure }
    yield* onRetry(reason, attempt)
    const retryAfter = failure._tag === "RateLimited" ? failure.retryAfterMs : null
    const wait = Effect.sleep(backoffMs(retry, attempt, yield* Random.next, retryAfter))
    yield* Effect.raceFirst(wait, draining.begun)
    if (draining.isBegun) return { _tag: "GivenUp", attempts: made }
  }
})
