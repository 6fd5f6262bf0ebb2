import { Deferred, Effect } from "effect"
import type { Throttle } from "../model/policy.ts"

/** Deliveries that were let in and are not over; what is not spent of it is given back. */
export interface Reservation {
  left: number
}

/**
 * Counts the deliveries of matches to one sink in fixed windows. A window opens with the first delivery that it lets in, and
 * one whose deliveries all failed was never opened. What is under way when a window ends is counted in the next one, where
 * it may succeed: no window sees more successes than are allowed. Times are in ms.
 */
export class ThrottleWindow {
  #openedAt = 0
  /** Deliveries that succeeded in the window. */
  #spent = 0
  /** Deliveries under way, of any window. */
  #reserved = 0
  #changed = Deferred.makeUnsafe<void>()

  /** Lets nothing in. */
  readonly none: Reservation = { left: 0 }

  #isOver({ windowMs }: Throttle, now: number): boolean {
    // A clock that was set back must not make the window longer.
    return this.#spent + this.#reserved === 0 || now - this.#openedAt >= windowMs || now < this.#openedAt
  }

  #open(throttle: Throttle, now: number): void {
    if (!this.#isOver(throttle, now)) return
    this.#openedAt = now
    this.#spent = 0
  }

  /** How many deliveries may begin now. */
  left(throttle: Throttle, now: number): number {
    const spent = this.#isOver(throttle, now) ? 0 : this.#spent
    return Math.max(0, throttle.maxDeliveries - spent - this.#reserved)
  }

  /** How long it takes at most until a delivery may begin: 0 when one may now, without end while all are under way. */
  waitMs(throttle: Throttle, now: number): number {
    if (this.left(throttle, now) > 0) return 0
    return this.#isOver(throttle, now) ? Number.POSITIVE_INFINITY : this.#openedAt + throttle.windowMs - now
  }

  /** Completes when the next delivery that is under way ends. To be asked for before `waitMs`. */
  get changed(): Effect.Effect<void> {
    return Deferred.await(this.#changed)
  }

  #tell(): void {
    const changed = this.#changed
    this.#changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Effect.void)
  }

  /** Lets deliveries in, at most `left`. */
  reserve(throttle: Throttle, deliveries: number, now: number): Reservation {
    this.#open(throttle, now)
    this.#reserved += deliveries
    return { left: deliveries }
  }

  /** One of the deliveries succeeded: it counts in the window in which it did. */
  spend(throttle: Throttle, reservation: Reservation, now: number): void {
    this.#open(throttle, now)
    reservation.left--
    this.#reserved--
    this.#spent++
    this.#tell()
  }

  /** The deliveries that are left of it failed, or were not made. */
  giveBack(reservation: Reservation): void {
    if (reservation.left === 0) return
    this.#reserved -= reservation.left
    reservation.left = 0
    this.#tell()
  }
}

/** Why a match that the throttle refuses is dead. */
export const throttledReason = ({ maxDeliveries, windowMs }: Throttle): string =>
  `permanent: throttled: policy allows ${maxDeliveries} deliveries per ${windowMs}ms; replay this dead letter to deliver it`
