import { Context } from "effect"

/** Bytes of answers that a piece of work may take in, how many came, and how many requests were sent for it. */
export interface Allowance {
  readonly bytes: number
  received: number
  requests: number
}

/** An allowance without a bound of its own. */
export const unbounded = (): Allowance => ({ bytes: Number.POSITIVE_INFINITY, received: 0, requests: 0 })

/** That of the work in whose fiber a request is sent; null where only the bound of each answer holds. */
export const Allowance = Context.Reference<Allowance | null>("blockwatcher/evm-rpc/Allowance", {
  defaultValue: () => null,
})
