import type { Cursor } from "../model/cursor.ts"
import type { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"

/** A resource as it is stored. */
export interface Stored<D> {
  readonly definition: D
  /** Changes with every change of the definition. */
  readonly revision: string
}

export interface StoredMonitor extends Stored<MonitorDefinition> {
  /** Hash of selector, predicate and gate. */
  readonly matchRevision: string
  /** The cursor before the first batch that this `matchRevision` saw; null until then. */
  readonly effectiveFrom: Cursor | null
}

export interface StoredSink extends Stored<SinkDefinition> {
  /** Why it is paused, for all networks; null while it is not. Stays when the definition changes. */
  readonly paused: string | null
}

export interface StoredResources {
  readonly networks: ReadonlyArray<Stored<NetworkDefinition>>
  readonly monitors: ReadonlyArray<StoredMonitor>
  readonly sinks: ReadonlyArray<StoredSink>
  /** Grows with every change of any of them. */
  readonly version: number
}

export type ResourceKind = "network" | "monitor" | "sink"

/** The content of a seed file that was last applied to a resource, by its hash. */
export interface SeedRecord {
  readonly kind: ResourceKind
  readonly id: string
  readonly path: string
  readonly hash: string
}

/**
 * A set of resource changes, applied whole or not at all. A monitor that is put enabled without `effectiveFrom` keeps
 * what is recorded for the same `matchRevision`.
 */
export interface ResourceChanges {
  /** The version that the change rests on: refused with `StaleResources` when another has been stored since. */
  readonly basedOn?: number
  readonly putNetworks?: ReadonlyArray<Stored<NetworkDefinition>>
  readonly putMonitors?: ReadonlyArray<StoredMonitor>
  readonly putSinks?: ReadonlyArray<Stored<SinkDefinition>>
  /** Pauses sinks, or lets them go on (null). */
  readonly pauseSinks?: ReadonlyArray<{ readonly id: string; readonly paused: string | null }>
  readonly deleteMonitors?: ReadonlyArray<string>
  readonly deleteSinks?: ReadonlyArray<string>
  /** Removes the networks with every row keyed by them; their feed positions go on from where they were. */
  readonly deleteNetworks?: ReadonlyArray<string>
  readonly seeds?: ReadonlyArray<SeedRecord>
  /** Owed and dead rows of a sink or monitor to give up: never attempted ones are cancelled, the others discarded. */
  readonly discard?: ReadonlyArray<{ readonly sink: string } | { readonly monitor: string }>
}
