import { Context } from "effect"

/** Bytes of answers that a piece of work may take in, and how many came. */
export interface Allowance {
  readonly bytes: number
  received: number
}

/** That of the work in whose fiber a request is sent; null where only the bound of each answer holds. */
export const Allowance = Context.Reference<Allowance | null>("blockwatcher/evm-rpc/Allowance", {
  defaultValue: () => null,
})
