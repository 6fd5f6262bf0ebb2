import { Deferred, type Effect, Exit } from "effect"
import { type Cursor, isAfter } from "../model/cursor.ts"

/** Tells the workers of a pipeline that it ends, and what of their rows they leave. */
export class Draining {
  readonly #begun = Deferred.makeUnsafe<void>()
  #leaveAfter: Cursor | null = null

  /** Completes when the drain begins. */
  get begun(): Effect.Effect<void> {
    return Deferred.await(this.#begun)
  }

  get isBegun(): boolean {
    return Deferred.isDoneUnsafe(this.#begun)
  }

  /** @param leaveAfter rows behind it are left as they are unless their attempt has begun; null leaves none */
  begin(leaveAfter: Cursor | null): void {
    this.#leaveAfter = leaveAfter
    Deferred.doneUnsafe(this.#begun, Exit.void)
  }

  /** Whether a row at this cursor is to be left. */
  leaves(cursor: Cursor): boolean {
    return this.#leaveAfter !== null && isAfter(cursor, this.#leaveAfter)
  }
}

/** Before everything: a drain that leaves all behind it leaves every row that waits. */
export const beforeAll: Cursor = { primary: Number.NEGATIVE_INFINITY, secondary: 0 }
