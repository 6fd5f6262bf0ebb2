import { Effect } from "effect"
import { changed, fullBlockByHash, fullBlockByNumber, headerAt, lacks } from "./block-reads.ts"
import type { Header } from "./header.ts"
import { type Receipt, receiptsOf } from "./receipts.ts"
import type { Answer, Call } from "./rpc/client.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import type { TransactionRouting, TransactionRoutes } from "./transaction-routing.ts"
import { readTransactions, type Transaction } from "./transactions.ts"

/** A transaction that some interest wants, and what came of it. */
export interface WantedTransaction {
  readonly transaction: Transaction
  readonly routes: TransactionRoutes
  readonly receipt: Receipt
}

/** A block with those of its transactions that some interest wants. */
export interface Block {
  readonly header: Header
  readonly transactions: ReadonlyArray<WantedTransaction>
  /** Calls that some interest wants if a factory turns out to have made what they call. */
  readonly candidates: ReadonlyArray<Transaction>
}

/** Full blocks that are asked for in one request: each can be several hundred kilobytes. */
const AT_ONCE = 8

type Found = Pick<WantedTransaction, "transaction" | "routes">

/** A block whose receipts were not asked for yet; of its transactions only the wanted ones are kept. */
interface Unproven extends Pick<Block, "header" | "candidates"> {
  readonly found: ReadonlyArray<Found>
}

const readBlock = Effect.fnUntraced(function* (
  provider: Provider,
  answer: Answer,
  number: number,
  routing: TransactionRouting,
): Effect.fn.Return<Unproven, RpcFailure> {
  const header = yield* headerAt(provider, answer, number)
  if (header === null) return yield* lacks(provider, number)
  const raw = yield* Effect.fromResult(answer)
  const transactions = yield* provider.client.read(() => readTransactions(raw))
  const found: Array<Found> = []
  const candidates: Array<Transaction> = []
  for (const transaction of transactions) {
    const routes = routing.routes(transaction, number)
    if (routes !== null) found.push({ transaction, routes })
    else if (routing.mayConcern(transaction)) candidates.push(transaction)
  }
  return { header, found, candidates }
})

/** Asks for blocks a few at a time, so that no more of them than that are held whole. */
const readBlocks = Effect.fnUntraced(function* (
  provider: Provider,
  calls: ReadonlyArray<{ readonly number: number; readonly call: Call }>,
  routing: TransactionRouting,
): Effect.fn.Return<ReadonlyArray<Unproven>, RpcFailure> {
  const blocks: Array<Unproven> = []
  for (let i = 0; i < calls.length; i += AT_ONCE) {
    const some = calls.slice(i, i + AT_ONCE)
    const answers = yield* provider.client.batch(some.map(({ call }) => call))
    for (const [j, { number }] of some.entries()) blocks.push(yield* readBlock(provider, answers[j]!, number, routing))
  }
  return blocks
})

const withReceipts = (
  provider: Provider,
  blocks: ReadonlyArray<Unproven>,
): Effect.Effect<ReadonlyArray<Block>, RpcFailure> =>
  Effect.map(
    receiptsOf(
      provider,
      blocks.map(({ header, found }) => ({ header, transactions: found.map(({ transaction }) => transaction) })),
    ),
    (receipts) =>
      blocks.map(({ header, found, candidates }) => ({
        header,
        transactions: found.map((one) => ({ ...one, receipt: receipts.get(one.transaction)! })),
        candidates,
      })),
  )

/** Exactly these blocks, which follow each other, with their wanted transactions. */
export const blocksOfHeaders = Effect.fnUntraced(function* (
  provider: Provider,
  headers: ReadonlyArray<Header>,
  routing: TransactionRouting,
): Effect.fn.Return<ReadonlyArray<Block>, RpcFailure> {
  const calls = headers.map(({ number, hash }) => ({ number, call: fullBlockByHash(hash) }))
  const blocks = yield* readBlocks(provider, calls, routing)
  for (const [i, { hash, number }] of headers.entries())
    if (blocks[i]!.header.hash !== hash)
      return yield* provider.client.failure("malformed", `another block ${number} was answered for the hash ${hash}`)
  return yield* withReceipts(
    provider,
    blocks.map((block, i) => ({ ...block, header: headers[i]! })),
  )
})

/** The blocks `from` to `to`, each the parent of the next, with their wanted transactions. */
export const blocksInRange = Effect.fnUntraced(function* (
  provider: Provider,
  from: number,
  to: number,
  routing: TransactionRouting,
): Effect.fn.Return<ReadonlyArray<Block>, RpcFailure> {
  const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const blocks = yield* readBlocks(
    provider,
    numbers.map((number) => ({ number, call: fullBlockByNumber(number) })),
    routing,
  )
  for (const [i, { header }] of blocks.entries())
    if (i > 0 && header.parentHash !== blocks[i - 1]!.header.hash)
      return yield* changed(provider, `block ${header.number} does not follow block ${header.number - 1}`)
  return yield* withReceipts(provider, blocks)
})
