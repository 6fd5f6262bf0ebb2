import { Schema } from "effect"
import type { RecordType } from "../../../core/model/fields.ts"
import type { Problem } from "../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../core/plugin/source.ts"
import { CallSelector, readCalls, signedCall, type WatchedCalls } from "../evm-rpc/selectors/call.ts"
import { areMade } from "../evm-rpc/selectors/factory.ts"
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
): WatchedCalls | WatchedTransactions | { readonly problems: ReadonlyArray<Problem> } => {
  if (selector.kind === "transaction") return readTransactionSelector(selector)
  const watched = readCalls(selector)
  if (!areMade(selector.address)) return watched
  const problem = {
    path: "address.factory",
    message:
      "evm-mempool reads no logs, so it does not know what a factory makes; list addresses, or watch the calls by evm-rpc once they are mined",
  }
  return { problems: "problems" in watched ? [...watched.problems, problem] : [problem] }
}

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
