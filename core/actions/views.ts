import type { DeliveryCount, DeliveryRow, DeliveryState } from "./store/views.ts"

export type { DeliveryState } from "./store/views.ts"
export { deliveryStates } from "./store/views.ts"

/** A delivery of an event to an action, as operators see it. */
export interface DeliveryView extends Omit<DeliveryRow, "pk"> {
  /** `<store>:<number>`. */
  readonly id: string
  readonly store: string
  /** Whether `retry`, `resolve` and `cancel` would do something, as it stands. */
  readonly retryable: boolean
  readonly resolvable: boolean
  readonly cancellable: boolean
}

/** A page of deliveries, in the order of their coming, one store after another. */
export interface DeliveryPage {
  readonly deliveries: ReadonlyArray<DeliveryView>
  /** What to go on behind; null at the end. */
  readonly next: string | null
}

/** Which deliveries are meant; all unless set. */
export interface DeliveriesFilter {
  readonly state?: DeliveryState
  readonly action?: string
  readonly store?: string
}

export interface DeliveriesRequest extends DeliveriesFilter {
  /** The id of a delivery, such as `next` of the page before. */
  readonly after?: string | null
  /** At most 1000; 100 unless set. */
  readonly limit?: number
}

/** Which deliveries something is done with, the oldest first. */
export interface ManyRequest<State extends DeliveryState> {
  readonly states: ReadonlyArray<State>
  readonly action?: string
  readonly store?: string
  /** `next` of the call before. */
  readonly after?: string | null
  /** The most that are changed, at most 10,000; 500 unless set. */
  readonly limit?: number
}

/** What became of many deliveries. */
export interface ManyOutcome {
  readonly changed: number
  /** Left as they were: their outcome is unknown, or something else changed them meanwhile. */
  readonly skipped: number
  /** What to go on behind; null at the end. */
  readonly next: string | null
}

/** A call to a provider that a delivery has made; what was sent and answered is not shown. */
export interface CallView {
  /** From 0, in the order of making. */
  readonly place: number
  readonly operation: string
  /** The idempotency key that it was sent with. */
  readonly key: string
  /** `intent`: it may have been sent, and nobody knows what came of it. `done`: its result is recorded. */
  readonly state: "intent" | "done"
  /** In ms since 1970. */
  readonly sentAt: number
}

/** An action of the program, or one that it does not have any more while deliveries to it are kept. */
export interface ActionView {
  readonly name: string
  /** Whether the program has it. */
  readonly declared: boolean
  readonly subscriptions: ReadonlyArray<{
    /** As that of `DeliveryView`. */
    readonly type: string
    /** Of the schema that payloads are read by. */
    readonly version: number
    /** The monitor whose matches and retractions it gets; null of an event type. */
    readonly monitor: string | null
  }>
  /** How many deliveries it has, by store and state. */
  readonly counts: ReadonlyArray<DeliveryCount & { readonly store: string }>
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
