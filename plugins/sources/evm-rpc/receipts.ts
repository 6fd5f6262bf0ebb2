import { Effect } from "effect"
import { changed } from "./block-reads.ts"
import type { Header } from "./header.ts"
import type { Answer, Call } from "./rpc/client.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import { readParty, type Transaction } from "./transactions.ts"
import { readHash, readObject, readQuantity, toQuantity } from "./wire.ts"

/** What came of a transaction. */
export interface Receipt {
  /** Null for blocks of a time when receipts did not tell it. */
  readonly status: "success" | "reverted" | null
  /** The address of the contract that it created. */
  readonly creates: string | null
}

/** Transactions of a block that are asked about. */
export interface TransactionsOfBlock {
  readonly header: Header
  readonly transactions: ReadonlyArray<Transaction>
}

interface Raw {
  readonly hash: string
  readonly blockHash: string
  readonly receipt: Receipt
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`

const readStatus = (value: unknown): Receipt["status"] => {
  if (value === undefined || value === null) return null
  return readQuantity(value, "the status of a receipt") === 0 ? "reverted" : "success"
}

const readCreated = (value: unknown): string | null => {
  const address = readParty(value, "the contractAddress of a receipt")
  return address === ZERO_ADDRESS ? null : address
}

const readReceipt = (answer: unknown): Raw => {
  const raw = readObject(answer, "a receipt")
  const status = readStatus(raw["status"])
  return {
    hash: readHash(raw["transactionHash"], "the transactionHash of a receipt"),
    blockHash: readHash(raw["blockHash"], "the blockHash of a receipt"),
    receipt: { status, creates: status === "reverted" ? null : readCreated(raw["contractAddress"]) },
  }
}

/** The call for all receipts of a block. */
export const blockReceipts = (number: number): Call => ({
  method: "eth_getBlockReceipts",
  params: [toQuantity(number)],
})

const transactionReceipt = (transaction: Transaction): Call => ({
  method: "eth_getTransactionReceipt",
  params: [transaction.hash],
})

/** Blocks whose receipts are asked for in one request. */
const AT_ONCE = 8

/** What came of each transaction. */
export type Receipts = ReadonlyMap<Transaction, Receipt>

/**
 * The receipts of transactions, each checked to be of its block. Where several of a block are wanted they come with all
 * of the block in one call, if the provider knows it; else, and what is not among them, one by one.
 */
export const receiptsOf = Effect.fnUntraced(function* (
  provider: Provider,
  wanted: ReadonlyArray<TransactionsOfBlock>,
): Effect.fn.Return<Receipts, RpcFailure> {
  const receipts = new Map<Transaction, Receipt>()
  const several = wanted.filter(({ transactions }) => transactions.length > 1)
  let doesAnswer = provider.blockReceipts !== "lacks"
  for (let i = 0; i < several.length && doesAnswer; i += AT_ONCE)
    doesAnswer = yield* readTogether(provider, several.slice(i, i + AT_ONCE), receipts)
  yield* readSingly(provider, wanted, receipts)
  if (!doesAnswer && provider.blockReceipts === "unknown") provider.blockReceipts = "lacks"
  return receipts
})

/** False if the provider does not answer for whole blocks. */
const readTogether = Effect.fnUntraced(function* (
  provider: Provider,
  wanted: ReadonlyArray<TransactionsOfBlock>,
  receipts: Map<Transaction, Receipt>,
): Effect.fn.Return<boolean, RpcFailure> {
  const answers = yield* provider.client.batch(wanted.map(({ header }) => blockReceipts(header.number)))
  for (const [i, block] of wanted.entries()) {
    const listed = yield* readBlockReceipts(provider, answers[i]!).pipe(
      Effect.catchIf(
        ({ kind }: RpcFailure) => kind === "refused" || kind === "unsupported",
        () => Effect.succeed(null),
      ),
    )
    if (listed === null) return false
    provider.blockReceipts = "answers"
    for (const transaction of block.transactions) {
      const raw = listed.get(transaction.hash)
      if (raw !== undefined) yield* keep(provider, block, transaction, raw, receipts)
    }
  }
  return true
})

/** The receipts of a block as they came, by transaction; what is no list holds none. */
const readBlockReceipts = Effect.fnUntraced(function* (provider: Provider, answer: Answer) {
  const raw = yield* Effect.fromResult(answer)
  const listed: ReadonlyArray<unknown> = Array.isArray(raw) ? raw : []
  return yield* provider.client.read(
    () => new Map(listed.map((one) => [String(readObject(one, "a receipt")["transactionHash"]).toLowerCase(), one])),
  )
})

const readSingly = Effect.fnUntraced(function* (
  provider: Provider,
  wanted: ReadonlyArray<TransactionsOfBlock>,
  receipts: Map<Transaction, Receipt>,
): Effect.fn.Return<void, RpcFailure> {
  const missing = wanted.flatMap((block) =>
    block.transactions.flatMap((transaction) => (receipts.has(transaction) ? [] : [{ block, transaction }])),
  )
  const answers = yield* provider.client.batch(missing.map(({ transaction }) => transactionReceipt(transaction)))
  for (const [i, { block, transaction }] of missing.entries()) {
    const answer = yield* Effect.fromResult(answers[i]!)
    if (answer === null)
      return yield* provider.client.failure(
        "missing",
        `the node does not have the receipt of transaction ${transaction.hash} in block ${block.header.number}`,
      )
    yield* keep(provider, block, transaction, answer, receipts)
  }
})

/** Reads a receipt and keeps it, if it is of this transaction in this block. */
const keep = Effect.fnUntraced(function* (
  provider: Provider,
  { header }: TransactionsOfBlock,
  transaction: Transaction,
  answer: unknown,
  receipts: Map<Transaction, Receipt>,
): Effect.fn.Return<void, RpcFailure> {
  const { hash, blockHash, receipt } = yield* provider.client.read(() => readReceipt(answer))
  if (hash !== transaction.hash)
    return yield* provider.client.failure(
      "malformed",
      `the receipt of ${hash} was answered where that of ${transaction.hash} was asked for`,
    )
  if (blockHash !== header.hash)
    return yield* changed(provider, `the receipts of block ${header.number} belong to another block of that number`)
  receipts.set(transaction, receipt)
})
