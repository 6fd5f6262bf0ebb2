import { Schema } from "effect"
import type { RecordType } from "../../../core/model/fields.ts"
import type { Problem } from "../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../core/plugin/source.ts"
import { CallSelector, readCalls, signedCall, type WatchedCalls } from "../evm-rpc/selectors/call.ts"
import {
  readTransactionSelector,
  signedTransaction,
  TransactionSelector,
  type WatchedTransactions,
} from "../evm-rpc/selectors/transaction.ts"

/** What a monitor looks for among pending transactions: written as for `evm-rpc`. */
export const Selector = Schema.Union([CallSelector, TransactionSelector])
export type Selector = typeof Selector.Type

/** Understands a selector, or tells everything that is wrong with it. */
export const readSelector = (
  selector: Selector,
): WatchedCalls | WatchedTransactions | { readonly problems: ReadonlyArray<Problem> } =>
  selector.kind === "call" ? readCalls(selector) : readTransactionSelector(selector)

/** The transaction of an event: it has no place on the chain yet, but it says what it pays to get one. */
const transaction: RecordType = {
  kind: "record",
  fields: {
    hash: { kind: "bytes" },
    nonce: { kind: "number", optional: true },
    gas: { kind: "int", optional: true },
    gas_price: { kind: "int", optional: true },
    max_fee_per_gas: { kind: "int", optional: true },
    max_priority_fee_per_gas: { kind: "int", optional: true },
  },
}

const describeCalls = (watched: WatchedCalls): SelectorDescription => ({
  fields: { kind: "record", fields: { ...signedCall(watched), transaction } },
  identity: ["transaction.hash", "to", "signature", "args"],
})

const transactionDescription: SelectorDescription = {
  fields: { kind: "record", fields: { ...signedTransaction, transaction } },
  identity: ["transaction.hash"],
}

/** Checks a selector and says what it yields. */
export const describeSelector = (
  selector: Selector,
): SelectorDescription | { readonly problems: ReadonlyArray<Problem> } => {
  const watched = readSelector(selector)
  if ("problems" in watched) return watched
  return watched.kind === "call" ? describeCalls(watched) : transactionDescription
}
