import { Effect, Option, type Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"
import { traceparentOf } from "../../plugin/tracing.ts"

/** The trace context that this runs in, or null: that of the event also where nobody reads spans. */
export const currentTraceparent: Effect.Effect<string | null> = Effect.match(Effect.currentParentSpan, {
  onFailure: () => null,
  onSuccess: traceparentOf,
})

/** The span that a `traceparent` names, to go on from it. */
export const spanOf = (traceparent: string | null): Tracer.ExternalSpan | undefined =>
  traceparent === null
    ? undefined
    : Option.getOrUndefined(HttpTraceContext.fromHeaders(Headers.fromRecordUnsafe({ traceparent })))
