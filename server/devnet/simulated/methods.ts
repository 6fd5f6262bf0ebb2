import { createHash } from "node:crypto"
import type { PendingTransaction } from "./pool.ts"
import type { ChainView, LogSpec, SimulatedBlock, TransactionSpec } from "./view.ts"

/** An error that a method answers. */
export interface MethodError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export type MethodAnswer = { readonly result: unknown } | { readonly error: MethodError }

/** How much of its chain a node shows. */
export interface View {
  readonly chain: ChainView
  /** Blocks by which the node is behind. */
  readonly lag: number
  /** Whether logs carry `blockTimestamp`. */
  readonly blockTimestamps: boolean
  readonly tags: boolean
}

export const hex = (number: number | bigint): string => `0x${number.toString(16)}`

/** The hash of a transaction of a block, by its place. */
export const transactionHash = (block: SimulatedBlock, index: number): string =>
  block.transactions[index]?.hash ?? `0x${createHash("sha256").update(`${block.hash} ${index}`).digest("hex")}`

/** A log as nodes answer it. */
export const rawLog = (
  block: SimulatedBlock,
  log: LogSpec,
  index: number,
  view: Pick<View, "blockTimestamps">,
): Readonly<Record<string, unknown>> => ({
  address: log.address,
  topics: log.topics,
  data: log.data,
  blockNumber: hex(block.number),
  blockHash: block.hash,
  ...(view.blockTimestamps ? { blockTimestamp: hex(block.timestamp) } : {}),
  transactionHash: log.transaction === null ? null : transactionHash(block, index),
  transactionIndex: log.transaction === null ? null : hex(index),
  logIndex: hex(index),
  removed: false,
})

/** Who sends what is not told otherwise. */
export const SENDER = `0x${"5e".repeat(20)}`

/** The transactions of a block: those that it was told, and those of logs behind them. */
const transactionsOf = ({ logs, transactions }: SimulatedBlock): ReadonlyArray<TransactionSpec> => [
  ...transactions,
  ...logs.slice(transactions.length).map(({ address }) => ({ to: address })),
]

const bodyOf = (spec: TransactionSpec) => ({
  type: "0x2",
  from: spec.from ?? SENDER,
  to: spec.to,
  value: hex(spec.value ?? 0),
  input: spec.input ?? "0x",
  ...(spec.nonce === undefined ? {} : { nonce: hex(spec.nonce) }),
  gas: "0x5208",
  maxFeePerGas: "0x77359400",
  maxPriorityFeePerGas: "0x3b9aca00",
})

const rawTransaction = (block: SimulatedBlock, spec: TransactionSpec, index: number) => ({
  blockHash: block.hash,
  blockNumber: hex(block.number),
  transactionIndex: hex(index),
  hash: transactionHash(block, index),
  ...bodyOf(spec),
})

/** A transaction of the pool as nodes answer it. */
export const rawPending = (pending: PendingTransaction) => ({
  blockHash: null,
  blockNumber: null,
  transactionIndex: null,
  hash: pending.hash,
  ...bodyOf(pending),
})

/** A block as nodes answer it, with its transactions or their hashes. */
export const rawBlock = (block: SimulatedBlock, full: boolean): Readonly<Record<string, unknown>> => ({
  number: hex(block.number),
  hash: block.hash,
  parentHash: block.parentHash,
  timestamp: hex(block.timestamp),
  logsBloom: block.logsBloom,
  miner: SENDER,
  gasUsed: "0x5208",
  gasLimit: "0x1c9c380",
  baseFeePerGas: "0x7",
  transactions: transactionsOf(block).map((spec, index) =>
    full ? rawTransaction(block, spec, index) : transactionHash(block, index),
  ),
})

const STATUS = { success: "0x1", reverted: "0x0" } as const

const rawReceipt = (block: SimulatedBlock, spec: TransactionSpec, index: number, view: View) => {
  const log = block.logs[index]
  const { status = "success" } = spec
  return {
    blockHash: block.hash,
    blockNumber: hex(block.number),
    transactionHash: transactionHash(block, index),
    transactionIndex: hex(index),
    ...(status === null ? {} : { status: STATUS[status] }),
    contractAddress: spec.creates ?? null,
    logs: log === undefined || log.transaction === null ? [] : [rawLog(block, log, index, view)],
  }
}

const rawReceipts = (block: SimulatedBlock, view: View) =>
  transactionsOf(block).map((spec, index) => rawReceipt(block, spec, index, view))

/** A filter of `eth_getLogs` and of subscriptions. */
export interface Filter {
  readonly address?: string | ReadonlyArray<string>
  readonly topics?: ReadonlyArray<string | null | ReadonlyArray<string>>
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: string
}

const holds = (wanted: string | null | undefined | ReadonlyArray<string>, value: string | undefined): boolean => {
  if (wanted === null || wanted === undefined) return true
  const list = typeof wanted === "string" ? [wanted] : wanted
  return value !== undefined && list.some((one) => one.toLowerCase() === value.toLowerCase())
}

const matches = (filter: Filter, log: LogSpec): boolean =>
  holds(filter.address, log.address) && (filter.topics ?? []).every((topic, i) => holds(topic, log.topics[i]))

const failure = (code: number, message: string): MethodAnswer => ({ error: { code, message } })

/** The logs of a block that a filter lets through, as nodes answer them. */
export const logsOf = (view: Pick<View, "blockTimestamps">, block: SimulatedBlock, filter: Filter) =>
  block.logs.flatMap((log, index) => (matches(filter, log) ? [rawLog(block, log, index, view)] : []))

const result = (value: unknown): MethodAnswer => ({ result: value })

const block = (found: SimulatedBlock | undefined, full: unknown): MethodAnswer =>
  result(found === undefined ? null : rawBlock(found, full === true))

/** The number of the newest block that the node shows. */
export const headOf = ({ chain, lag }: Pick<View, "chain" | "lag">): number => Math.max(0, chain.head.number - lag)

const poolContent = (chain: ChainView): MethodAnswer => {
  const pending: Record<string, Record<string, unknown>> = {}
  for (const one of chain.pool.pending) (pending[one.from] ??= {})[one.nonce] = rawPending(one)
  return result({ pending, queued: {} })
}

/** Answers a call from the chain, as a node that behaves well does. */
export const answer = (view: View, method: string, params: ReadonlyArray<any>): MethodAnswer => {
  const { chain } = view
  const head = headOf(view)
  const visible = (block: SimulatedBlock | undefined) =>
    block !== undefined && block.number <= head && chain.isCanonical(block) ? block : undefined
  const find = (tag: string): SimulatedBlock | undefined => {
    if (tag === "latest") return chain.at(head)
    if (tag === "earliest") return chain.at(0)
    const number = tag === "safe" ? chain.safe : tag === "finalized" ? chain.finalized : Number(tag)
    return number === null ? undefined : visible(chain.at(number))
  }

  switch (method) {
    case "eth_chainId":
      return result(hex(chain.chainId))
    case "eth_blockNumber":
      return result(hex(head))
    case "eth_getBlockByNumber":
      if (!view.tags && (params[0] === "safe" || params[0] === "finalized"))
        return failure(-32602, `invalid block tag ${params[0]}`)
      return block(find(params[0]), params[1])
    case "eth_getBlockByHash":
      return block(visible(chain.byHash(params[0])), params[1])
    case "eth_getBlockReceipts": {
      const found = find(params[0])
      return result(found === undefined ? null : rawReceipts(found, view))
    }
    case "eth_getTransactionReceipt":
      for (let number = head; number >= 0; number--) {
        const block = chain.at(number)
        const found = block && rawReceipts(block, view).find((one) => one.transactionHash === params[0])
        if (found !== undefined) return result(found)
      }
      return result(null)
    case "eth_getTransactionByHash": {
      const pending = chain.pool.byHash(params[0])
      if (pending !== undefined) return result(rawPending(pending))
      for (let number = head; number >= 0; number--) {
        const block = chain.at(number)
        const index = block && transactionsOf(block).findIndex((_, i) => transactionHash(block, i) === params[0])
        if (index !== undefined && index !== -1)
          return result(rawTransaction(block!, transactionsOf(block!)[index]!, index))
      }
      return result(null)
    }
    case "txpool_content":
      return poolContent(chain)
    case "eth_getLogs": {
      const filter = params[0] as Filter
      if (filter.blockHash !== undefined) {
        const found = visible(chain.byHash(filter.blockHash))
        return found === undefined ? failure(-32000, "unknown block") : result(logsOf(view, found, filter))
      }
      const from = find(filter.fromBlock ?? "latest")?.number ?? Number(filter.fromBlock)
      const to = Math.min(head, Number(filter.toBlock ?? head))
      const logs: Array<unknown> = []
      for (let number = from; number <= to; number++) {
        const block = chain.at(number)
        if (block !== undefined) logs.push(...logsOf(view, block, filter))
      }
      return result(logs)
    }
    default:
      return failure(-32601, `the method ${method} does not exist/is not available`)
  }
}
