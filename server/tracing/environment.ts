import { Effect, Redacted, Result } from "effect"
import { parseInteger } from "../environment-values.ts"
import { readVariable, type Variable } from "../environment-reader.ts"
import {
  parseAttributes,
  parseEndpoint,
  parseHeaders,
  parseShare,
  parseWord,
  type Protocol,
  shownUrl,
  tracesOf,
} from "./values.ts"

/** How traces are exported. */
export interface TracingEnvironment {
  /** With the path of traces. */
  readonly endpoint: URL
  readonly protocol: Protocol
  readonly compression: "gzip" | "none"
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  /** How long the collector has for an answer, in ms. */
  readonly timeoutMs: number
  /** How long spans wait to be sent together, in ms, and how many at most. */
  readonly delayMs: number
  readonly batchSize: number
  readonly serviceName: string
  /** What the spans say of this process. */
  readonly resource: Readonly<Record<string, string>>
  /** The share of the traces that are kept, from 0 to 1. */
  readonly share: number
}

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const

const DEFAULT_ENDPOINT = new URL("http://localhost:4318/v1/traces")

const secret = () => "a value that is not shown"

/**
 * Reads the OTEL_ variables of OpenTelemetry from the ConfigProvider: null unless they say where traces go. What is wrong
 * with them is added to `problems`; what is exported nowhere is not judged.
 */
export const readTracing = Effect.fnUntraced(function* (problems: Array<string>) {
  const read = <A>(name: string, parse: Variable<A>["parse"], byDefault: A, shown?: Variable<A>["shown"]) =>
    readVariable(problems, { name: `OTEL_${name}`, parse, byDefault, ...(shown === undefined ? {} : { shown }) })

  /** That of traces, or that of all signals. */
  const readOtlp = <A>(name: string, parse: Variable<A>["parse"], byDefault: A, shown?: Variable<A>["shown"]) =>
    Effect.flatMap(read(`EXPORTER_OTLP_${name}`, parse, byDefault, shown), (common) =>
      read(`EXPORTER_OTLP_TRACES_${name}`, parse, common, shown),
    )

  const disabled = yield* read("SDK_DISABLED", parseWord(["true", "false"]), "false")
  if (disabled === "true") return null
  const exporter = yield* read<"otlp" | "none" | null>("TRACES_EXPORTER", parseWord(["otlp", "none"] as const), null)
  if (exporter === "none") return null
  const base = yield* read<URL | null>("EXPORTER_OTLP_ENDPOINT", parseEndpoint, null, shownUrl)
  const own = yield* read<URL | null>("EXPORTER_OTLP_TRACES_ENDPOINT", parseEndpoint, null, shownUrl)
  const endpoint = own ?? (base === null ? null : tracesOf(base)) ?? (exporter === null ? null : DEFAULT_ENDPOINT)
  if (endpoint === null) return null

  const protocols = ["http/protobuf", "http/json"] as const
  const advice = "; gRPC is not spoken: name the collector's HTTP endpoint, as a rule that of port 4318"
  const sampler = yield* read("TRACES_SAMPLER", parseWord(SAMPLERS), "parentbased_always_on")
  const ratio = yield* read("TRACES_SAMPLER_ARG", parseShare, 1)
  const resource = yield* read<TracingEnvironment["resource"]>("RESOURCE_ATTRIBUTES", parseAttributes, {})
  const environment: TracingEnvironment = {
    endpoint,
    protocol: yield* readOtlp<Protocol>("PROTOCOL", parseWord(protocols, advice), "http/protobuf"),
    compression: yield* readOtlp<"gzip" | "none">("COMPRESSION", parseWord(["gzip", "none"]), "none"),
    headers: yield* readOtlp("HEADERS", parseHeaders, Redacted.make({}), secret),
    timeoutMs: yield* readOtlp("TIMEOUT", parseInteger(1, 600_000), 10_000),
    delayMs: yield* read("BSP_SCHEDULE_DELAY", parseInteger(1, 600_000), 5_000),
    batchSize: yield* read("BSP_MAX_EXPORT_BATCH_SIZE", parseInteger(1, 100_000), 512),
    serviceName: yield* read("SERVICE_NAME", Result.succeed, resource["service.name"] ?? "blockwatcher"),
    resource,
    share: sampler.endsWith("traceidratio") ? ratio : sampler.endsWith("always_off") ? 0 : 1,
  }
  return environment
})
