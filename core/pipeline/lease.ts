import { Effect, Latch } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Owner, Storage } from "../storage/storage.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"

/** The shortest lease, in ms: how long others wait for an owner of which nothing is known. */
const MIN_LEASE_MS = 15_000

/** A lease with room for two of the longest attempts, in ms. */
export const leaseMs = (longestAttemptMs: number): number => Math.max(MIN_LEASE_MS, 2 * longestAttemptMs)

/**
 * How much is left of the lease under which a network is run. An owner that was stopped or cut off finds it run out and
 * sends nothing until it was renewed, which fails when another has taken over.
 */
export class HeldLease {
  #ms: number
  #since: Instant
  #longestAttempt: number
  readonly #wanted = Latch.makeUnsafe(false)
  readonly #renewed = Latch.makeUnsafe(false)

  /**
   * @param longestAttemptMs of the sinks that are known; one that takes longer makes the lease longer
   * @param since taken before the claim was sent: the lease is never thought longer than it is
   */
  constructor(longestAttemptMs: number, since: Instant) {
    this.#ms = leaseMs(longestAttemptMs)
    this.#longestAttempt = longestAttemptMs
    this.#since = since
  }

  /** Whether an attempt that may take so long, in ms, ends within the lease. */
  covers(attemptMs: number): boolean {
    return this.#ms - elapsedMs(this.#since) > attemptMs
  }

  /** Waits until the lease covers an attempt that may take so long, in ms. */
  untilCovers(attemptMs: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#longestAttempt = Math.max(this.#longestAttempt, attemptMs)
      if (this.covers(attemptMs)) return Effect.void
      this.#renewed.closeUnsafe()
      this.#wanted.openUnsafe()
      return Effect.andThen(this.#renewed.await, this.untilCovers(attemptMs))
    })
  }

  /** Renews for as long as it runs; fails when another owner has taken over. */
  keep(
    storage: Storage["Service"],
    owner: Owner,
    status: PipelineStatus,
  ): Effect.Effect<never, StorageError | NotOwner> {
    return Effect.gen({ self: this }, function* () {
      yield* Effect.timeoutOption(this.#wanted.await, this.#ms / 3)
      this.#wanted.closeUnsafe()
      const ms = leaseMs(this.#longestAttempt)
      yield* Effect.suspend(() => {
        // Each attempt counts from its own beginning.
        const since = instant()
        return Effect.map(storage.renew(owner, ms), () => {
          this.#ms = ms
          this.#since = since
        })
      }).pipe(untilStored(status))
      this.#renewed.openUnsafe()
    }).pipe(Effect.forever)
  }
}

/** A moment on two clocks: the monotonic one may stand still while the machine sleeps, the other may be set back. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export const instant = (): Instant => ({ monotonic: performance.now(), wall: Date.now() })

const elapsedMs = ({ monotonic, wall }: Instant): number => Math.max(performance.now() - monotonic, Date.now() - wall)
