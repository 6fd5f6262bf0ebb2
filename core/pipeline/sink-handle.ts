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
  #changed = Deferred.makeUnsafe<void>()

  constructor(runtime: SinkRuntime | null, error: string | null) {
    this.#runtime = runtime
    this.#error = error
  }

  get runtime(): SinkRuntime | null {
    return this.#runtime
  }

  /** Why there is no runtime. */
  get error(): string | null {
    return this.#error
  }

  /** Completes at the next change. */
  get changed(): Effect.Effect<void> {
    return Deferred.await(this.#changed)
  }

  replace(runtime: SinkRuntime | null, error: string | null): void {
    this.#runtime = runtime
    this.#error = error
    const changed = this.#changed
    this.#changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Effect.void)
  }
}
