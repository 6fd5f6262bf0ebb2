import { Schema } from "effect"
import type { RecordType } from "../../../../core/model/fields.ts"
import type { Problem } from "../../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../../core/plugin/source.ts"
import { Addresses, readAddresses } from "./addresses.ts"
import { blockFields, transactionFields } from "./fields.ts"

const MinValue = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  Schema.String.check(Schema.isPattern(/^\d{1,78}$/)),
]).annotate({ message: "expected an amount of wei: an integer, as a string if it is above 2^53 - 1" })

/**
 * Transactions: those that one of the `from` sends, to one of the `to`, that create a contract or do not (`creation`),
 * and carry at least `min_value` wei. What is left out is any.
 */
export const TransactionSelector = Schema.Struct({
  kind: Schema.Literal("transaction"),
  from: Schema.optionalKey(Addresses),
  to: Schema.optionalKey(Addresses),
  creation: Schema.optionalKey(Schema.Boolean),
  min_value: Schema.optionalKey(MinValue),
})
export type TransactionSelector = typeof TransactionSelector.Type

/** A selector that was understood. */
export interface WatchedTransactions {
  readonly kind: "transaction"
  /** Canonical addresses, or null for any. */
  readonly from: ReadonlyArray<string> | null
  readonly to: ReadonlyArray<string> | null
  /** Whether it creates a contract, or null for both. */
  readonly creation: boolean | null
  readonly minValue: bigint
}

/** Understands a selector, or tells everything that is wrong with it. */
export const readTransactionSelector = (
  selector: TransactionSelector,
): WatchedTransactions | { readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const from = readAddresses("from", selector.from, problems)
  const to = readAddresses("to", selector.to, problems)
  if (to !== null && selector.creation === true)
    problems.push({
      path: "creation",
      message: "a transaction that creates a contract has no 'to'; leave one of them out",
    })
  return problems.length > 0
    ? { problems }
    : { kind: "transaction", from, to, creation: selector.creation ?? null, minValue: BigInt(selector.min_value ?? 0) }
}

/** What is known of a transaction before it is mined. */
export const signedTransaction: RecordType["fields"] = {
  kind: { kind: "string" },
  from: { kind: "address", optional: true },
  to: { kind: "address", optional: true },
  value: { kind: "int", optional: true },
  input: { kind: "bytes" },
}

/** The fields of a transaction, and those that identify it. */
export const transactionDescription: SelectorDescription = {
  fields: {
    kind: "record",
    fields: {
      ...signedTransaction,
      status: { kind: "string", optional: true },
      creates: { kind: "address", optional: true },
      transaction: transactionFields,
      block: blockFields,
    },
  },
  identity: ["block.number", "block.hash", "transaction.index", "transaction.hash"],
}
