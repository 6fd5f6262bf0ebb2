import type { Cursor } from "../model/cursor.ts"

/**
 * What a network's pipeline tells about itself: read by views and health checks, written by the pipeline's own fibers.
 * Reasons are sentences for a person, null when nothing is wrong.
 */
export class PipelineStatus {
  /** The newest position that the source has seen. */
  head: Cursor | null = null
  /** Whether the present run of the source has shown that it reads its feed. */
  reading = false
  source: string | null = null
  storage: string | null = null
  /** Sinks whose worker has rows and cannot deliver them, with the reason. */
  readonly sinks = new Map<string, string>()

  /** Forgets what an earlier pipeline told. */
  begin(): void {
    this.reading = false
    this.source = null
    this.sinks.clear()
  }

  /** The trouble to show first: without its database a pipeline can do nothing at all. */
  get trouble(): string | null {
    const [sink] = this.sinks
    return this.storage ?? (sink === undefined ? this.source : `waits for sink ${sink[0]}: ${sink[1]}`)
  }
}
