import type { Fields } from "../../../core/model/fields.ts"
import type { SourceEvent } from "../../../core/plugin/source.ts"
import type { CallShape, TransactionRouting } from "../evm-rpc/transaction-routing.ts"
import { argumentsOf, inputOf } from "../evm-rpc/transactions.ts"
import type { PendingTransaction } from "./pending.ts"

const transactionOf = (pending: PendingTransaction): Fields => ({
  hash: pending.hash,
  nonce: pending.nonce,
  gas: pending.gas,
  gas_price: pending.gasPrice,
  max_fee_per_gas: pending.maxFeePerGas,
  max_priority_fee_per_gas: pending.maxPriorityFeePerGas,
})

const transactionFields = (pending: PendingTransaction): Fields => ({
  kind: "transaction",
  from: pending.from,
  to: pending.to,
  value: pending.value,
  input: inputOf(pending),
  transaction: transactionOf(pending),
})

const callFields = (pending: PendingTransaction, { name, signature, decode }: CallShape): Fields => ({
  kind: "call",
  name,
  signature,
  from: pending.from,
  to: pending.to,
  value: pending.value,
  args: decode([], argumentsOf(pending)),
  transaction: transactionOf(pending),
})

/** The events of a transaction that is the `arrival`th of its network. */
export const eventsOf = (
  pending: PendingTransaction,
  arrival: number,
  routing: TransactionRouting,
): ReadonlyArray<SourceEvent> => {
  const routes = routing.routes(pending)
  if (routes === null) return []
  const event = (interests: ReadonlyArray<string>, fields: () => Fields): SourceEvent => ({
    cursor: { primary: arrival, secondary: 0 },
    index: 0,
    interests,
    time: null,
    fields,
  })
  const ofCalls = routes.calls.map(({ shape, interests }) => event(interests, () => callFields(pending, shape)))
  return routes.interests.length === 0
    ? ofCalls
    : [event(routes.interests, () => transactionFields(pending)), ...ofCalls]
}
