import { readTransaction, type Transaction } from "../evm-rpc/transactions.ts"
import { readInteger, readObject, readQuantity } from "../evm-rpc/wire.ts"

/** A transaction that waits to be mined, as its sender signed it. What its type does not have is null. */
export interface PendingTransaction extends Transaction {
  readonly nonce: number | null
  /** The most gas that it may use. */
  readonly gas: bigint | null
  /** In wei, like the two below. */
  readonly gasPrice: bigint | null
  readonly maxFeePerGas: bigint | null
  readonly maxPriorityFeePerGas: bigint | null
}

const amount = (value: unknown, what: string): bigint | null =>
  value === undefined || value === null ? null : readInteger(value, what)

/** Reads a transaction as a node tells it. Throws `MalformedAnswer`. */
export const readPending = (answer: unknown): PendingTransaction => {
  const raw = readObject(answer, "a pending transaction")
  const { nonce } = raw
  return {
    ...readTransaction(raw, 0),
    nonce: nonce === undefined || nonce === null ? null : readQuantity(nonce, "the nonce of a transaction"),
    gas: amount(raw["gas"], "the gas of a transaction"),
    gasPrice: amount(raw["gasPrice"], "the gasPrice of a transaction"),
    maxFeePerGas: amount(raw["maxFeePerGas"], "the maxFeePerGas of a transaction"),
    maxPriorityFeePerGas: amount(raw["maxPriorityFeePerGas"], "the maxPriorityFeePerGas of a transaction"),
  }
}
