import type { Cursor } from "../../../core/model/cursor.ts"
import { isAfter } from "../../../core/model/cursor.ts"
import type { Fields } from "../../../core/model/fields.ts"
import type { SourceEvent } from "../../../core/plugin/source.ts"
import type { Block, WantedTransaction } from "./blocks.ts"
import type { Header } from "./header.ts"
import type { Route } from "./log-bucket.ts"
import type { CallShape } from "./transaction-routing.ts"
import { argumentsOf, inputOf } from "./transactions.ts"

/** The secondary of transaction 0; 0 is the block. */
const FIRST_TRANSACTION = 1

const blockOf = ({ number, hash, timestamp }: Header) => ({ number, hash, timestamp })

const blockFields = (header: Header): Fields => ({
  kind: "block",
  block: {
    ...blockOf(header),
    parent_hash: header.parentHash,
    miner: header.miner,
    transactions: header.transactions,
    gas_used: header.gasUsed,
    gas_limit: header.gasLimit,
    base_fee_per_gas: header.baseFeePerGas,
  },
})

const transactionFields = (header: Header, { transaction, receipt }: WantedTransaction): Fields => ({
  kind: "transaction",
  from: transaction.from,
  to: transaction.to,
  value: transaction.value,
  input: inputOf(transaction),
  status: receipt.status,
  creates: receipt.creates,
  transaction: { hash: transaction.hash, index: transaction.index },
  block: blockOf(header),
})

const callFields = (header: Header, { transaction, receipt }: WantedTransaction, shape: CallShape): Fields => ({
  kind: "call",
  name: shape.name,
  signature: shape.signature,
  from: transaction.from,
  to: transaction.to,
  value: transaction.value,
  args: shape.decode([], argumentsOf(transaction)),
  status: receipt.status,
  transaction: { hash: transaction.hash, index: transaction.index },
  block: blockOf(header),
})

const eventsOfTransaction = (header: Header, wanted: WantedTransaction): ReadonlyArray<SourceEvent> => {
  const cursor = { primary: header.number, secondary: FIRST_TRANSACTION + wanted.transaction.index }
  const event = (interests: ReadonlyArray<string>, fields: () => Fields): SourceEvent => ({
    cursor,
    index: 0,
    interests,
    time: header.timestamp! * 1000,
    fields,
  })
  const { interests, calls } = wanted.routes
  return [
    ...(interests.length === 0 ? [] : [event(interests, () => transactionFields(header, wanted))]),
    ...calls.map(({ shape, interests }: Route<CallShape>) => event(interests, () => callFields(header, wanted, shape))),
  ]
}

/** The events of blocks and their transactions in order, behind `after`; every header has a timestamp. */
export const blockEvents = (
  blocks: ReadonlyArray<Block>,
  interests: ReadonlyArray<string>,
  after: Cursor,
): ReadonlyArray<SourceEvent> =>
  blocks
    .flatMap(({ header, transactions }): ReadonlyArray<SourceEvent> => {
      const ofTransactions = transactions.flatMap((wanted) => eventsOfTransaction(header, wanted))
      if (interests.length === 0) return ofTransactions
      const ofBlock: SourceEvent = {
        cursor: { primary: header.number, secondary: 0 },
        index: 0,
        interests,
        time: header.timestamp! * 1000,
        fields: () => blockFields(header),
      }
      return [ofBlock, ...ofTransactions]
    })
    .filter(({ cursor }) => isAfter(cursor, after))
