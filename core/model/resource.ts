import { Schema } from "effect"
import { Aggregate, Gate, MAX_CONCURRENCY, Retry, Throttle } from "./policy.ts"
import { between, orElse, positiveInt } from "./schemas.ts"

/** Letters, digits, `-`, `_` and `.`, at most 128, starting with a letter or digit. */
export const ResourceId = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, {
    expected: "1 to 128 letters, digits, '-', '_' or '.', starting with a letter or digit",
  }),
)

/** Plugin-owned JSON: core keeps it as it is, the plugin's Schema reads it. */
const PluginJson = Schema.Record(Schema.String, Schema.Unknown)

export const NetworkDefinition = Schema.Struct({
  id: ResourceId,
  module: Schema.NonEmptyString,
  config: PluginJson,
  /** How far behind the checkpoint its journal reaches, in primaries (blocks); null: as the runtime's settings say. */
  journalDepth: Schema.NullOr(positiveInt).pipe(orElse<number | null>(null)),
})
export type NetworkDefinition = typeof NetworkDefinition.Type

export const MonitorDefinition = Schema.Struct({
  id: ResourceId,
  network: ResourceId,
  selector: PluginJson,
  predicate: Schema.NullOr(Schema.String).pipe(orElse<string | null>(null)),
  gate: Schema.NullOr(Gate).pipe(orElse<typeof Gate.Encoded | null>(null)),
  sinks: Schema.Array(ResourceId),
  enabled: Schema.Boolean.pipe(orElse(true)),
})
export type MonitorDefinition = typeof MonitorDefinition.Type

export const SinkDefinition = Schema.Struct({
  id: ResourceId,
  module: Schema.NonEmptyString,
  config: PluginJson,
  retry: Retry.pipe(orElse({})),
  throttle: Schema.NullOr(Throttle).pipe(orElse<typeof Throttle.Encoded | null>(null)),
  aggregate: Schema.NullOr(Aggregate).pipe(orElse<typeof Aggregate.Encoded | null>(null)),
  concurrency: between(1, MAX_CONCURRENCY).pipe(orElse(1)),
  buffer: Schema.Literals(["MEMORY", "DURABLE"]).pipe(orElse<"MEMORY" | "DURABLE">("MEMORY")),
})
export type SinkDefinition = typeof SinkDefinition.Type
