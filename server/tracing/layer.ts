import { ConfigProvider, Effect, Layer, Option, Redacted, Tracer } from "effect"
import { OtlpExporter, OtlpSerialization, OtlpTracer } from "effect/observability"
import { collectorClient } from "./collector.ts"
import type { TracingEnvironment } from "./environment.ts"

/** How long what is left may take to be sent at the end, in ms: less than the time between a drain and an end by force. */
const LAST_MS = 1_500

/** Keeps a share of the traces: it is decided at the root, and holds for all that follows. */
const sampled = (tracer: Tracer.Tracer, share: number): Tracer.Tracer =>
  share === 1
    ? tracer
    : Tracer.make({
        span: (options) => {
          const kept = Option.isSome(options.parent) || Math.random() < share
          return tracer.span(kept ? options : { ...options, sampled: false })
        },
      })

/** The tracer that an environment asks for: it sends spans to an OTLP collector, and waits for it with nothing but the last. */
export const tracingLayer = (environment: TracingEnvironment): Layer.Layer<never> => {
  const { endpoint, protocol, compression, headers, delayMs, batchSize, serviceName, resource, share } = environment
  const tracer = OtlpTracer.make({
    url: endpoint.href,
    resource: { serviceName, attributes: resource },
    headers: Redacted.value(headers),
    compression,
    exportInterval: delayMs,
    maxBatchSize: batchSize,
    shutdownTimeout: LAST_MS,
  })
  return Layer.effect(
    Tracer.Tracer,
    Effect.map(tracer, (made) => sampled(made, share)),
  ).pipe(
    Layer.provide([
      OtlpExporter.layerFlusher,
      protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf,
      collectorClient(environment),
      // All of it is read and judged already.
      ConfigProvider.layer(ConfigProvider.fromUnknown({})),
    ]),
  )
}
