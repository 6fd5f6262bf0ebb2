import { Effect } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { Block } from "./blocks.ts"
import type { Chain } from "./chain.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { TransactionRouting } from "./transaction-routing.ts"

/**
 * Settles which calls of blocks are of contracts that a factory made, once all that it made up to their end is known: others
 * were not known when the blocks were asked for, and some are not there after all.
 */
export const followCalls = Effect.fnUntraced(function* (
  chain: Chain,
  routing: TransactionRouting,
  blocks: ReadonlyArray<Block>,
): Effect.fn.Return<ReadonlyArray<Block>, RpcFailure | SourceRefused> {
  if (!routing.hasFactories) return blocks
  const late = blocks.flatMap(({ header, candidates }) => {
    const transactions = candidates.filter((transaction) => routing.routes(transaction, header.number) !== null)
    return transactions.length === 0 ? [] : [{ header, transactions }]
  })
  const receipts = late.length === 0 ? null : yield* chain.receiptsOf(late)
  const found = new Map(late.map(({ header, transactions }) => [header.number, transactions]))
  return blocks.map(({ header, transactions }) => {
    const known = transactions.map(({ transaction, receipt }) => ({ transaction, receipt }))
    const more = (found.get(header.number) ?? []).map((transaction) => ({
      transaction,
      receipt: receipts!.get(transaction)!,
    }))
    const wanted = [...known, ...more].flatMap((one) => {
      const routes = routing.routes(one.transaction, header.number)
      return routes === null ? [] : [{ ...one, routes }]
    })
    return {
      header,
      transactions: wanted.toSorted((a, b) => a.transaction.index - b.transaction.index),
      candidates: [],
    }
  })
})
