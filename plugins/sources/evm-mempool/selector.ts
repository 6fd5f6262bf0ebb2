import { Schema } from "effect"
import type { RecordType } from "../../../core/model/fields.ts"
import type { Problem } from "../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../core/plugin/source.ts"
import { recordOfAny } from "../evm-rpc/abi.ts"
import { CallSelector, readCalls, type WatchedCalls } from "../evm-rpc/selectors/call.ts"
import {
  readTransactionSelector,
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

const describeCalls = ({ functions }: WatchedCalls): SelectorDescription => ({
  fields: {
    kind: "record",
    fields: {
      kind: { kind: "string" },
      name: { kind: "string" },
      signature: { kind: "string" },
      from: { kind: "address", optional: true },
      to: { kind: "address" },
      value: { kind: "int", optional: true },
      args: recordOfAny(functions),
      transaction,
    },
  },
  identity: ["transaction.hash", "to", "signature", "args"],
})

const transactionDescription: SelectorDescription = {
  fields: {
    kind: "record",
    fields: {
      kind: { kind: "string" },
      from: { kind: "address", optional: true },
      to: { kind: "address", optional: true },
      value: { kind: "int", optional: true },
      input: { kind: "bytes" },
      transaction,
    },
  },
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
