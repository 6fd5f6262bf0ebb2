import type { Result } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { Problem } from "../model/problem.ts"
import type { NetworkDefinition } from "../model/resource.ts"
import type { ActiveMonitor } from "../pipeline/interest-versions.ts"
import type { Stored, StoredMonitor } from "../storage/stored.ts"

/** A monitor with its compiled form, or why it does not compile with the plugins of this process. */
export interface MonitorEntry {
  readonly stored: StoredMonitor
  readonly active: Result.Result<ActiveMonitor, ReadonlyArray<Problem>>
  /** Where the present revision took effect; null until its first batch. */
  effectiveFrom: Cursor | null
  /** What its source must know before it takes effect. */
  waitsFor: string | null
  /** The last run-time error of its predicate. */
  error: string | null
}

/**
 * The networks and monitors of this process, as stored. Changed only behind a stored change, by one writer at a time;
 * read by pipelines on every batch. Sinks are kept by the sink registry.
 */
export class Catalog {
  readonly networks = new Map<string, Stored<NetworkDefinition>>()
  readonly monitors = new Map<string, MonitorEntry>()
  /** Networks that drain before they are removed. */
  readonly deleting = new Set<string>()

  monitorsOf(network: string): ReadonlyArray<MonitorEntry> {
    return [...this.monitors.values()].filter(({ stored }) => stored.definition.network === network)
  }

  enabledMonitorsOf(network: string): ReadonlyArray<MonitorEntry> {
    return this.monitorsOf(network).filter(({ stored }) => stored.definition.enabled)
  }

  /** The networks whose monitors name a sink. */
  networksOfSink(sink: string): ReadonlyArray<string> {
    return [...this.monitors.values()]
      .filter(({ stored: { definition } }) => definition.sinks.includes(sink))
      .map(({ stored: { definition } }) => definition.network)
  }

  /** The sinks that a monitor's matches go to now; null if it is gone, disabled or moved to another network. */
  sinksOf(network: string, monitor: string): ReadonlyArray<string> | null {
    const definition = this.monitors.get(monitor)?.stored.definition
    return definition === undefined || !definition.enabled || definition.network !== network ? null : definition.sinks
  }
}
