import type { Cursor } from "../model/cursor.ts"
import type { JsonObject } from "../model/fields.ts"
import type { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import type { Match } from "../model/sink-event.ts"

export type NetworkState = "STARTING" | "RUNNING" | "DRAINING" | "INVALIDATING" | "PAUSED" | "FAILED" | "STANDBY"
export type SinkState = "RUNNING" | "PAUSED" | "FAILED"

/** A network with what it does at present. Sensitive config fields are masked. */
export interface NetworkView extends NetworkDefinition {
  readonly config: JsonObject
  readonly revision: string
  readonly state: NetworkState
  readonly error: string | null
  readonly checkpoint: CheckpointView | null
  readonly head: Cursor | null
  /** In primaries (blocks), or null while the head is unknown. */
  readonly lag: number | null
  readonly inFlightEvents: number
  readonly deadLetterCount: number
}

export interface CheckpointView {
  readonly network: string
  readonly cursor: Cursor
  /** In ms since 1970. */
  readonly updatedAt: number
}

export interface MonitorView extends MonitorDefinition {
  readonly selector: JsonObject
  readonly revision: string
  readonly effectiveFrom: Cursor | null
  readonly error: string | null
}

export interface SinkView extends SinkDefinition {
  readonly config: JsonObject
  readonly revision: string
  readonly state: SinkState
  readonly error: string | null
}

/** A match with its place, as queries and tests of monitors show it. */
export interface MatchView extends Match {
  readonly cursor: Cursor
  readonly time: number | null
}
