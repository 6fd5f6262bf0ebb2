import type { JsonObject } from "../model/fields.ts"
import type { NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import { maskConfig } from "../plugin/mask.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Stored } from "../storage/stored.ts"
import type { MonitorEntry } from "./catalog.ts"
import type { SinkHandle } from "../pipeline/sink-handle.ts"
import type { NetworkActivity } from "./network-condition.ts"
import type { MonitorView, NetworkView, SinkView } from "./views.ts"

/** Without its plugin nobody knows which fields are sensitive: every top-level field is masked. */
const shown = (config: Readonly<Record<string, unknown>>, sensitive: ReadonlyArray<string> | undefined): JsonObject =>
  maskConfig(config, sensitive ?? Object.keys(config)) as JsonObject

const atRest: NetworkActivity = {
  state: "STARTING",
  error: null,
  checkpoint: null,
  head: null,
  inFlightEvents: 0,
  idle: false,
  debts: [],
}

export const networkView = (
  plugins: Plugins["Service"],
  { definition, revision }: Stored<NetworkDefinition>,
  activity: NetworkActivity = atRest,
  deadLetterCount: number,
): NetworkView => {
  const { idle: _, debts: __, ...shownActivity } = activity
  const { head, checkpoint } = activity
  return {
    ...definition,
    config: shown(definition.config, plugins.source(definition.module)?.sensitive),
    revision,
    ...shownActivity,
    lag: head === null || checkpoint === null ? null : Math.max(0, head.primary - checkpoint.cursor.primary),
    deadLetterCount,
  }
}

export const monitorView = ({ stored, active, effectiveFrom, waitsFor, error }: MonitorEntry): MonitorView => ({
  ...stored.definition,
  selector: stored.definition.selector as JsonObject,
  revision: stored.revision,
  effectiveFrom,
  error:
    active._tag === "Success"
      ? (error ?? waitsFor)
      : active.failure.map(({ path, message }) => `${path}: ${message}`).join("; "),
})

export const sinkView = (
  plugins: Plugins["Service"],
  { definition, revision }: Stored<SinkDefinition>,
  handle: SinkHandle,
): SinkView => ({
  ...definition,
  config: shown(definition.config, plugins.sink(definition.module)?.sensitive),
  revision,
  ...sinkActivity(handle),
})

/** Why a sink is paused, and what ends it. */
const pausedBecause = (reason: string): string => `${reason}; resumeSink lets it go on`

/** One that cannot be built says so first: a resume alone does not let it go on. */
export const sinkActivity = ({ error, paused }: SinkHandle): Pick<SinkView, "state" | "error"> => {
  if (error !== null)
    return { state: "FAILED", error: paused === null ? error : `${error} (and paused: ${pausedBecause(paused)})` }
  return paused === null ? { state: "RUNNING", error: null } : { state: "PAUSED", error: pausedBecause(paused) }
}
