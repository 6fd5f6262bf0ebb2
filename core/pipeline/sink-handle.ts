import { Deferred, Effect } from "effect"
import type { Retry } from "../model/resource.ts"
import type { Sink } from "../plugin/sink.ts"

/** A sink as the workers of all networks use it. */
export interface SinkRuntime {
  readonly sink: Sink
  readonly retry: Retry
}

/**
 * The present runtime of a sink resource, replaced when its config changes. Workers notice a change at once, also in
 * the middle of a back-off or an attempt, and wait while there is none.
 */
export class SinkHandle {
  #runtime: SinkRuntime | null
  #error: string | null
  #isMissing: boolean
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

  /** Completes at the next change. */
  get changed(): Effect.Effect<void> {
    return Deferred.await(this.#changed)
  }

  remove(sink: string): void {
    this.replace(null, `sink ${sink} does not exist`)
    this.#isMissing = true
  }

  replace(runtime: SinkRuntime | null, error: string | null): void {
    this.#isMissing = false
    this.#runtime = runtime
    this.#error = error
    const changed = this.#changed
    this.#changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Effect.void)
  }
}
