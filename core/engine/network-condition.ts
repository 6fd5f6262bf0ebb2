import type { Cursor } from "../model/cursor.ts"
import type { Pipeline } from "../pipeline/pipeline.ts"
import { PipelineStatus } from "../pipeline/status.ts"
import type { Debt } from "./debts.ts"
import type { Readiness } from "./readiness.ts"
import type { CheckpointView, NetworkState } from "./views.ts"

/** What a network does at present. */
export interface NetworkActivity {
  readonly state: NetworkState
  readonly error: string | null
  readonly checkpoint: CheckpointView | null
  readonly head: Cursor | null
  readonly inFlightEvents: number
  /** It only waits for a monitor: nothing is wrong. */
  readonly idle: boolean
  readonly debts: ReadonlyArray<Debt>
}

/** How a supervisor is to end: leave what is owed to the next start, or finish first what is being taken back. */
export type Ending = "leave" | "finish"

/** What a supervisor and its parts know of their network; written by them, read by views. */
export class NetworkCondition {
  status = new PipelineStatus()
  pipeline: Pipeline | null = null
  checkpoint: CheckpointView | null = null
  phase: "working" | "draining" | "completed" = "working"
  ending: Ending | null = null
  /** Stored: an operator lets the network rest. */
  paused = false
  /** Why the network is FAILED; the next command tries again. */
  failure: string | null = null
  /** Why the last pipeline broke. */
  fault: string | null = null
  /** Which FAILED sinks the network goes on without, in words; empty when there are none. */
  without = ""
  /** Who runs the network instead of this process. */
  heldBy: string | null = null
  /** What is being taken back, in words. */
  takingBack: string | null = null
  /** What is owed to each sink, as of the last count; nothing while another process runs the network. */
  debts: ReadonlyArray<Debt> = []

  /** @param now in ms */
  activity(readiness: Readiness, now: number): NetworkActivity {
    const { status, pipeline, phase } = this
    const working = pipeline !== null && (status.reading || phase === "completed")
    const waits = readiness._tag === "Waiting" && !(readiness.idle && working) && !this.#rests
    const waiting = waits ? readiness.reason : null
    const trouble = this.#trouble(now)
    return {
      state: this.#state(working),
      error: trouble ?? waiting,
      checkpoint: this.checkpoint,
      head: status.head,
      inFlightEvents: pipeline?.inFlight() ?? 0,
      idle: waits && trouble === null && readiness.idle,
      debts: this.debts,
    }
  }

  get #rests(): boolean {
    return this.paused || this.heldBy !== null || this.takingBack !== null
  }

  #trouble(now: number): string | null {
    const trouble = this.status.trouble(now)
    if (this.heldBy !== null) return trouble
    if (this.takingBack !== null) return trouble === null ? null : `${this.takingBack}: ${trouble}`
    return (this.paused ? null : this.failure) ?? this.fault ?? trouble
  }

  #state(working: boolean): NetworkState {
    if (this.heldBy !== null) return "STANDBY"
    if (this.takingBack !== null) return "INVALIDATING"
    if (this.phase === "draining") return "DRAINING"
    if (this.paused) return "PAUSED"
    if (this.failure !== null) return "FAILED"
    return working ? "RUNNING" : "STARTING"
  }
}
