import { Context, Effect, type Fiber, Tracer } from "effect"

type Attributes = Readonly<Record<string, string | number>>

/** What a span says beside its name. */
export interface SpanOptions {
  /** It is a child of the first, linked to the others, and a root if there are none; a child of the present one unless set. */
  readonly parents?: ReadonlyArray<Tracer.AnySpan>
  readonly kind?: Tracer.SpanKind
  readonly attributes: Attributes
}

/** Links of one span, as many as collectors usually keep. */
const LINKS = 128

/** Whether somebody reads spans: Effect's own tracer makes them for nobody. */
const isTraced = ({ cache: { tracer, tracerEnabled } }: Fiber.Fiber<unknown, unknown>): boolean =>
  tracer !== undefined && tracer !== Tracer.nativeTracer && tracerEnabled

const spanOptions = ({ parents, kind, attributes }: SpanOptions): Tracer.SpanOptionsNoTrace => ({
  attributes,
  ...(kind === undefined ? {} : { kind }),
  ...(parents === undefined ? {} : parents.length === 0 ? { root: true } : { parent: parents[0]! }),
  ...(parents === undefined || parents.length < 2
    ? {}
    : { links: parents.slice(1, LINKS + 1).map((span) => ({ span, attributes: {} })) }),
})

/**
 * Runs an effect in a span of its own. Where nobody reads spans there is none: `options` is not asked, and what is run gets
 * null.
 */
export const inSpan = <A, E, R>(
  name: string,
  options: () => SpanOptions,
  run: (span: Tracer.Span | null) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    isTraced(fiber)
      ? Effect.useSpan(name, spanOptions(options()), (span) =>
          Effect.provideService(run(span), Tracer.ParentSpan, span),
        )
      : run(null),
  ) as Effect.Effect<A, E, R>

/** Runs an effect as a part of a span that was begun elsewhere, or ended; null is none. */
export const within = <A, E, R>(span: Tracer.AnySpan | null, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  span === null ? effect : (Effect.provideService(effect, Tracer.ParentSpan, span) as Effect.Effect<A, E, R>)

/** Runs an effect as a part of no span, whatever it is started from. */
export const withinNone = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(
    effect,
    (context: Context.Context<R>) => Context.omit(Tracer.ParentSpan)(context) as Context.Context<R>,
  )

/** The present span; null without one, or where nobody reads spans. */
export const presentSpan: Effect.Effect<Tracer.AnySpan | null> = Effect.withFiber((fiber) =>
  Effect.succeed(isTraced(fiber) ? (fiber.cache.span ?? null) : null),
)

/** A span as the `traceparent` header of W3C Trace Context says it; null for none. */
export const traceparentOf = (span: Tracer.AnySpan | null): string | null =>
  span === null ? null : `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`

/** The `traceparent` header by which whoever is called can continue the present trace; null where nobody reads spans. */
export const presentTraceparent: Effect.Effect<string | null> = Effect.map(presentSpan, traceparentOf)
