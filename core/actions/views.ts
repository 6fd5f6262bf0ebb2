import type { DeliveryState } from "./store/views.ts"

export type { DeliveryCount, DeliveryState } from "./store/views.ts"
export { deliveryStates } from "./store/views.ts"

/** A delivery of an event to an action, as operators see it. */
export interface DeliveryView {
  /** `<store>:<number>`. */
  readonly id: string
  readonly store: string
  readonly action: string
  readonly state: DeliveryState
  /** Runs that failed. */
  readonly attempts: number
  /** When it may be run, in ms since 1970. */
  readonly due: number
  /** Why it is failed or parked: `attempts_exhausted`, `outcome_unknown`, `call_diverged`, `payload_unreadable`, … */
  readonly code: string | null
  /** The same in words; of one that waits, why its last run failed. */
  readonly reason: string | null
  readonly createdAt: number
  readonly settledAt: number | null
  /** The event's id and type (`match:<monitor>` for a monitor's matches and retractions). */
  readonly event: string
  readonly type: string
  readonly tenant: string | null
  readonly matchId: string | null
}

/** A page of deliveries, in the order of their coming, one store after another. */
export interface DeliveryPage {
  readonly deliveries: ReadonlyArray<DeliveryView>
  /** What to go on behind; null at the end. */
  readonly next: string | null
}

export interface DeliveriesRequest {
  readonly state?: DeliveryState
  readonly action?: string
  readonly store?: string
  /** `next` of the page before. */
  readonly after?: string | null
  /** At most 500; 100 unless set. */
  readonly limit?: number
}

/** A delivery's change of state in this process. */
export interface DeliveryChange {
  readonly id: string
  readonly store: string
  readonly action: string
  readonly event: string
  readonly state: DeliveryState
  readonly code: string | null
}

/** What an operator found out about a call of unknown outcome. */
export type CallOutcome =
  | {
      readonly done: true
      /** What the call would have answered, as JSON that its operation's output schema reads. */
      readonly result: unknown
    }
  | { readonly done: false }
