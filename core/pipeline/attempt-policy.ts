import type { Retry } from "../model/policy.ts"
import type { DeliveryResult } from "./delivery.ts"
import type { SinkRuntime } from "./sink-handle.ts"

/** Decides how many attempts each delivery of a sink gets. */
export interface AttemptPolicy {
  /** The retries of the next delivery; null: none at all, it is dead as it stands. */
  readonly next: (runtime: SinkRuntime) => Retry | null
  readonly ended: (result: DeliveryResult) => void
}

/** Each delivery gets what the sink's definition says. */
export const byDefinition: AttemptPolicy = { next: ({ retry }) => retry, ended: () => {} }

/** Deliveries that get one attempt each after one used up its retries. */
const CHANCES = 3

/**
 * Keeps a sink that is down from holding up an invalidation: after one delivery used up its retries, the next three get
 * one attempt each, and if these fail too, what is left gets none. A success, or another config of the sink, ends it.
 */
export class Probation implements AttemptPolicy {
  #runtime: SinkRuntime | null = null
  /** Null while the sink is trusted. */
  #chances: number | null = null
  /** Deliveries that got no attempt. */
  givenUp = 0

  next(runtime: SinkRuntime): Retry | null {
    if (runtime !== this.#runtime) {
      this.#runtime = runtime
      this.#chances = null
    }
    if (this.#chances === null) return runtime.retry
    if (this.#chances > 0) return { ...runtime.retry, maxAttempts: 1 }
    this.givenUp++
    return null
  }

  ended(result: DeliveryResult): void {
    if (result._tag === "GivenUp") return
    // A refusal of one event is an answer: the sink is there.
    if (result._tag === "Delivered" || result.judged) this.#chances = null
    else if (this.#chances !== 0) this.#chances = this.#chances === null ? CHANCES : this.#chances - 1
  }
}
