import { Effect } from "effect"
import { HeldLease, instant, leaseMs } from "../pipeline/lease.ts"
import type { Held, StorageError } from "../storage/error.ts"
import type { Owner, Storage } from "../storage/storage.ts"
import { isGone } from "../storage/holder.ts"

/** A network that this process runs, and how long it still may. */
export interface Ownership {
  readonly owner: Owner
  readonly lease: HeldLease
}

/** Takes a network over, unless another process holds it. */
export const claimNetwork = (
  storage: Storage["Service"],
  network: string,
  holder: string,
  longestAttemptMs: number,
): Effect.Effect<Ownership, StorageError | Held> =>
  Effect.suspend(() => {
    const since = instant()
    return Effect.map(storage.claim(network, { holder, ms: leaseMs(longestAttemptMs), isGone }), (owner) => ({
      owner,
      lease: new HeldLease(longestAttemptMs, since),
    }))
  })

/** How long an end waits for the database to take the lease back. */
const RELEASE_WAIT = "2 seconds"

/** Gives a network back, so that another process need not wait for the lease. */
export const releaseNetwork = (storage: Storage["Service"], owner: Owner): Effect.Effect<void> =>
  storage.release(owner).pipe(
    Effect.timeoutOption(RELEASE_WAIT),
    Effect.asVoid,
    Effect.catchTags({
      NotOwner: () => Effect.void,
      StorageError: (error) =>
        Effect.logWarning(`the lease was not given back and runs out by itself: ${error.message}`),
    }),
  )
