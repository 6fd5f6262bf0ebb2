import type { Cursor } from "../model/cursor.ts"

/** A wait for a sink that takes nothing more. Times are in ms. */
export interface SinkWait {
  readonly since: number
  /** What the sink is at, in words. */
  readonly reason: (now: number) => string
}

/** A wait is told when it is this long, in ms: a sink that is merely slower than its network makes many short ones. */
const LONG_MS = 5_000

/**
 * What a network's pipeline tells about itself: read by views and health checks, written by the pipeline's own fibers.
 * Reasons are sentences for a person, null when nothing is wrong.
 */
export class PipelineStatus {
  /** The newest position that the source has seen; null while it does not look. */
  head: Cursor | null = null
  /** When it was seen, in ms. */
  headAt = 0
  /** Whether the present run of the source has shown that it reads its feed. */
  reading = false
  source: string | null = null
  storage: string | null = null
  /** Sinks whose worker has rows and cannot deliver them, with the reason. */
  readonly sinks = new Map<string, string>()
  /** Sinks that the network waits for at this moment. */
  readonly waits = new Map<string, SinkWait>()

  /** Forgets what an earlier pipeline told. */
  begin(): void {
    this.reading = false
    this.source = null
    this.sinks.clear()
    this.waits.clear()
  }

  /** For how long the network has been waiting for a sink, in ms; 0 while it makes short waits, or none. */
  waitMs(now: number): number {
    const longest = Math.max(0, ...[...this.waits.values()].map(({ since }) => now - since))
    return longest < LONG_MS ? 0 : longest
  }

  /** The trouble to show first: without its database a pipeline can do nothing at all. */
  trouble(now: number): string | null {
    if (this.storage !== null) return this.storage
    const [sink] = this.sinks
    if (sink !== undefined) return `waits for sink ${sink[0]}: ${sink[1]}`
    for (const [id, { since, reason }] of this.waits) {
      if (now - since < LONG_MS) continue
      const seen = this.head === null ? 0 : now - this.headAt
      const stale = seen < LONG_MS ? "" : `; the head was seen ${secondsOf(seen)} s ago`
      return `waits for sink ${id}: ${reason(now)}${stale}`
    }
    return this.source
  }
}

/** A duration in ms as whole seconds. */
export const secondsOf = (ms: number): number => Math.floor(ms / 1_000)
