import type { DeliveryState } from "./store/views.ts"

type Standing = { readonly state: DeliveryState; readonly code: string | null }

/** What can be run again: also what waits, at once. */
export const RETRYABLE = ["failed", "parked", "cancelled", "waiting"] as const satisfies ReadonlyArray<DeliveryState>

/** What can be given up. */
export const CANCELLABLE = ["waiting", "failed", "parked"] as const satisfies ReadonlyArray<DeliveryState>

/** Whether a delivery rests because nobody knows what came of its call. */
export const isResolvable = ({ state, code }: Standing): boolean => state === "parked" && code === "outcome_unknown"

/** A run would only find again that the outcome of its call is not known. */
export const isRetryable = (delivery: Standing): boolean =>
  RETRYABLE.some((state) => state === delivery.state) && !isResolvable(delivery)

export const isCancellable = ({ state }: Standing): boolean => CANCELLABLE.some((one) => one === state)
