import { Deferred, Effect } from "effect"

/**
 * Wakes all that wait. Take `next` before looking at what it announces, then wait for it: what happens in between is
 * not missed.
 */
export class Signal {
  #next = Deferred.makeUnsafe<void>()

  /** Succeeds at the first `notify` after this was read. */
  get next(): Effect.Effect<void> {
    return Deferred.await(this.#next)
  }

  notify(): void {
    const waiting = this.#next
    this.#next = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(waiting, Effect.void)
  }
}
