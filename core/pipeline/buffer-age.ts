import { type Clock, Effect } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Storage } from "../storage/storage.ts"
import { untilStored } from "./persist.ts"
import type { PipelineStatus } from "./status.ts"

/** How long a look into the database is good for while a buffer moves on, in ms. */
const STALE_MS = 1_000

interface Buffer {
  readonly network: string
  readonly sink: string
  readonly storage: Storage["Service"]
  readonly status: PipelineStatus
  readonly clock: Clock.Clock
}

/**
 * How long the oldest row of a durable buffer waits. It changes only when deliveries are over: it is looked for when its
 * worker goes on, and stands still with it. A look is one step in an index, at any number of rows.
 */
export class BufferAge {
  readonly #buffer: Buffer
  /** When it was written, in ms. */
  #oldest: number | null = null
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  /** Looks again if it may have changed by much. */
  get look(): Effect.Effect<void, StorageError | NotOwner> {
    return Effect.suspend(() => {
      const { network, sink, storage, status, clock } = this.#buffer
      const now = clock.currentTimeMillisUnsafe()
      if (this.#oldest !== null && now - this.#lookedAt < STALE_MS) return Effect.void
      this.#lookedAt = now
      return storage.oldestOwed(network, sink).pipe(
        untilStored(status),
        Effect.map((oldest) => {
          this.#oldest = oldest
        }),
      )
    })
  }

  /** As of the last look, in seconds. */
  get seconds(): number {
    return this.#oldest === null ? 0 : Math.max(0, this.#buffer.clock.currentTimeMillisUnsafe() - this.#oldest) / 1000
  }
}
