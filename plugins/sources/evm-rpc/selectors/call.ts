import { Schema } from "effect"
import { toFunctionSelector, toFunctionSignature } from "viem"
import type { RecordType } from "../../../../core/model/fields.ts"
import type { Problem } from "../../../../core/model/problem.ts"
import type { SelectorDescription } from "../../../../core/plugin/source.ts"
import { formName, type NamedParameter, recordOfAny } from "../abi.ts"
import { Contracts, readContracts, type WatchedContracts } from "./factory.ts"
import { blockFields, transactionFields } from "./fields.ts"
import { Abi, readItems, Signatures } from "./items.ts"

/**
 * Transactions that call a function: one of the signatures in `function` or of a whole `abi`, at the addresses, at the
 * contracts that a factory made or at any. Calls that contracts make to each other are in no block, so they are not seen.
 */
export const CallSelector = Schema.Struct({
  kind: Schema.Literal("call"),
  address: Schema.optionalKey(Contracts),
  function: Schema.optionalKey(Signatures),
  abi: Schema.optionalKey(Abi),
})
export type CallSelector = typeof CallSelector.Type

/** One of the functions that a selector looks for. */
export interface WatchedFunction {
  readonly name: string
  /** `transfer(address,uint256)`. */
  readonly signature: string
  readonly parameters: ReadonlyArray<NamedParameter>
  /** The first four bytes of the input of a call. */
  readonly selector4: string
}

/** A selector that was understood. */
export interface WatchedCalls extends WatchedContracts {
  readonly kind: "call"
  readonly functions: ReadonlyArray<WatchedFunction>
}

/** Understands a selector, or tells everything that is wrong with it. */
export const readCalls = (selector: CallSelector): WatchedCalls | { readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const contracts = readContracts(selector.address, problems)
  const functions = new Map<string, WatchedFunction>()
  for (const { path, abi, parameters } of readItems(
    "function",
    { signatures: selector.function, abi: selector.abi },
    problems,
  )) {
    const one = {
      name: abi.name,
      signature: toFunctionSignature(abi),
      parameters,
      selector4: toFunctionSelector(abi),
    }
    const other = functions.get(one.selector4)
    if (other === undefined) functions.set(one.selector4, one)
    else if (other.signature !== one.signature)
      problems.push({
        path,
        message: `calls of it look like those of ${other.signature}: both begin with ${one.selector4}; watch them in two monitors`,
      })
    else if (formName(other.signature, other.parameters) !== formName(one.signature, one.parameters))
      problems.push({ path, message: `${one.signature} is listed before with other names; leave one out` })
  }
  return problems.length > 0 ? { problems } : { kind: "call", ...contracts, functions: [...functions.values()] }
}

/** What is known of a call before it is mined. */
export const signedCall = ({ functions }: WatchedCalls): RecordType["fields"] => ({
  kind: { kind: "string" },
  name: { kind: "string" },
  signature: { kind: "string" },
  from: { kind: "address", optional: true },
  to: { kind: "address" },
  value: { kind: "int", optional: true },
  args: recordOfAny(functions),
})

/** The fields of a call that matches the selector, and those that identify it. */
export const describeCalls = (watched: WatchedCalls): SelectorDescription => ({
  fields: {
    kind: "record",
    fields: {
      ...signedCall(watched),
      status: { kind: "string", optional: true },
      transaction: transactionFields,
      block: blockFields,
    },
  },
  identity: ["block.number", "block.hash", "transaction.index", "to", "signature", "args"],
})
