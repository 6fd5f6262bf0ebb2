import { Effect, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

/** The W3C trace context (`traceparent`) of a span. */
export const traceparentOf = (span: Tracer.AnySpan): string =>
  `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`

/** The trace context that this runs in, or null. */
export const currentTraceparent: Effect.Effect<string | null> = Effect.match(Effect.currentParentSpan, {
  onFailure: () => null,
  onSuccess: traceparentOf,
})

/** The span that a `traceparent` names, to go on from it. */
export const spanOf = (traceparent: string | null): Tracer.ExternalSpan | undefined =>
  traceparent === null
    ? undefined
    : Option.getOrUndefined(HttpTraceContext.fromHeaders(Headers.fromRecordUnsafe({ traceparent })))
