import type { Throttle } from "../model/policy.ts"

/** Deliveries that a window has let in; what is not spent of it is given back. */
export interface Reservation {
  readonly window: number
  left: number
}

/**
 * Counts the deliveries of matches to one sink in fixed windows. A window opens with the first delivery that it lets in, and
 * one whose deliveries all failed was never opened. Times are in ms.
 */
export class ThrottleWindow {
  #openedAt = 0
  #used = 0
  #window = 0

  /** Lets nothing in. */
  readonly none: Reservation = { window: 0, left: 0 }

  #isOver({ windowMs }: Throttle, now: number): boolean {
    // A clock that was set back must not make the window longer.
    return this.#used === 0 || now - this.#openedAt >= windowMs || now < this.#openedAt
  }

  /** How many deliveries may begin now. */
  left(throttle: Throttle, now: number): number {
    return this.#isOver(throttle, now) ? throttle.maxDeliveries : Math.max(0, throttle.maxDeliveries - this.#used)
  }

  /** How long it takes until a delivery may begin: 0 when one may now. */
  waitMs(throttle: Throttle, now: number): number {
    return this.left(throttle, now) > 0 ? 0 : this.#openedAt + throttle.windowMs - now
  }

  /** Lets deliveries in, at most `left`. */
  reserve(throttle: Throttle, deliveries: number, now: number): Reservation {
    this.#take(throttle, deliveries, now)
    return { window: this.#window, left: deliveries }
  }

  #take(throttle: Throttle, deliveries: number, now: number): void {
    if (this.#isOver(throttle, now)) {
      this.#openedAt = now
      this.#used = 0
      this.#window++
    }
    this.#used += deliveries
  }

  /** One of the deliveries succeeded: it counts in the window in which it did. */
  spend(throttle: Throttle, reservation: Reservation, now: number): void {
    reservation.left--
    if (reservation.window !== this.#window || this.#isOver(throttle, now)) this.#take(throttle, 1, now)
  }

  /** The deliveries that are left of it failed, or were not made. */
  giveBack(reservation: Reservation): void {
    if (reservation.window === this.#window) this.#used -= reservation.left
    reservation.left = 0
  }
}

/** Why a match that the throttle refuses is dead. */
export const throttledReason = ({ maxDeliveries, windowMs }: Throttle): string =>
  `permanent: throttled: policy allows ${maxDeliveries} deliveries per ${windowMs}ms; replay this dead letter to deliver it`
