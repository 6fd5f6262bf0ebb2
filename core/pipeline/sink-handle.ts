import { Deferred, Effect } from "effect"
import type { Aggregate, Retry, Throttle } from "../model/policy.ts"
import type { Sink } from "../plugin/sink.ts"

/** A sink as the workers of all networks use it. */
export interface SinkRuntime {
  readonly sink: Sink
  readonly retry: Retry
  readonly throttle: Throttle | null
  readonly aggregate: Aggregate | null
  /** The most deliveries of a network that are under way at once. */
  readonly concurrency: number
}

/**
 * The present runtime of a sink resource, replaced when its config changes. Workers notice a change, or a pause, at once,
 * also in the middle of a back-off or an attempt, and wait while there is none.
 */
export class SinkHandle {
  #runtime: SinkRuntime | null
  #error: string | null
  #isMissing: boolean
  #isDurable = false
  #paused: string | null = null
  #changed = Deferred.makeUnsafe<void>()

  /** A handle of a sink that does not exist (yet). */
  static missing(sink: string): SinkHandle {
    const handle = new SinkHandle(null, null)
    handle.remove(sink)
    return handle
  }

  constructor(runtime: SinkRuntime | null, error: string | null) {
    this.#runtime = runtime
    this.#error = error
    this.#isMissing = false
  }

  get runtime(): SinkRuntime | null {
    return this.#runtime
  }

  /** Why there is no runtime. */
  get error(): string | null {
    return this.#error
  }

  /** Whether no such sink exists: nobody can put it right, except by making it. */
  get isMissing(): boolean {
    return this.#isMissing
  }

  /** Whether it has a durable buffer: its rows wait in the database, and nothing waits for them. Known without a runtime. */
  get isDurable(): boolean {
    return this.#isDurable
  }

  /** Why it is paused, for all networks; null while it is not. */
  get paused(): string | null {
    return this.#paused
  }

  /** Completes at the next change. */
  get changed(): Effect.Effect<void> {
    return Deferred.await(this.#changed)
  }

  remove(sink: string): void {
    this.replace(null, `sink ${sink} does not exist`)
    this.#isMissing = true
  }

  replace(runtime: SinkRuntime | null, error: string | null, isDurable = false): void {
    this.#isMissing = false
    this.#isDurable = isDurable
    this.#runtime = runtime
    this.#error = error
    this.#tell()
  }

  /** Pauses it, or lets it go on (null). */
  pause(reason: string | null): void {
    if (this.#paused === reason) return
    this.#paused = reason
    this.#tell()
  }

  #tell(): void {
    const changed = this.#changed
    this.#changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Effect.void)
  }
}
