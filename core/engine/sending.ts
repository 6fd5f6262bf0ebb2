import type { Effect } from "effect"
import type { NetworkMetrics } from "../pipeline/metrics.ts"
import type { SinkHandle } from "../pipeline/sink-handle.ts"
import type { PipelineStatus } from "../pipeline/status.ts"
import type { EventTerms } from "../storage/events.ts"
import type { Storage } from "../storage/storage.ts"
import type { Ownership } from "./ownership.ts"

/** What it takes to send rows of a network beside its pipeline, for as long as this process owns it. */
export interface Sending {
  readonly network: string
  readonly ownership: Ownership
  readonly storage: Storage["Service"]
  readonly status: PipelineStatus
  readonly metrics: NetworkMetrics
  /** What makes events for the program's actions; undefined if it has none. */
  readonly events?: EventTerms
  readonly sinkHandle: (sink: string) => SinkHandle
  /** Is told that a sink's receiver is gone for good; pauses the sink at once. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
}
