import { createHash } from "node:crypto"
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

const hex = (number: number | bigint): string => `0x${number.toString(16)}`

/** The hash of a transaction of a block, by its place. */
export const transactionHash = (block: SimulatedBlock, index: number): string =>
  `0x${createHash("sha256").update(`${block.hash} ${index}`).digest("hex")}`

const rawLog = (block: SimulatedBlock, log: LogSpec, index: number, view: View) => ({
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

const rawTransaction = (block: SimulatedBlock, spec: TransactionSpec, index: number) => ({
  blockHash: block.hash,
  blockNumber: hex(block.number),
  transactionIndex: hex(index),
  hash: transactionHash(block, index),
  type: "0x2",
  from: spec.from ?? SENDER,
  to: spec.to,
  value: hex(spec.value ?? 0),
  input: spec.input ?? "0x",
})

const rawBlock = (block: SimulatedBlock, full: boolean) => ({
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

interface Filter {
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

const logsOf = (view: View, block: SimulatedBlock, filter: Filter) =>
  block.logs.flatMap((log, index) => (matches(filter, log) ? [rawLog(block, log, index, view)] : []))

const result = (value: unknown): MethodAnswer => ({ result: value })

const block = (found: SimulatedBlock | undefined, full: unknown): MethodAnswer =>
  result(found === undefined ? null : rawBlock(found, full === true))

/** Answers a call from the chain, as a node that behaves well does. */
export const answer = (view: View, method: string, params: ReadonlyArray<any>): MethodAnswer => {
  const { chain } = view
  const head = Math.max(0, chain.head.number - view.lag)
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
        const found = rawReceipts(chain.at(number)!, view).find((one) => one.transactionHash === params[0])
        if (found !== undefined) return result(found)
      }
      return result(null)
    case "eth_getLogs": {
      const filter = params[0] as Filter
      if (filter.blockHash !== undefined) {
        const found = visible(chain.byHash(filter.blockHash))
        return found === undefined ? failure(-32000, "unknown block") : result(logsOf(view, found, filter))
      }
      const from = find(filter.fromBlock ?? "latest")?.number ?? Number(filter.fromBlock)
      const to = Math.min(head, Number(filter.toBlock ?? head))
      const logs: Array<unknown> = []
      for (let number = from; number <= to; number++) logs.push(...logsOf(view, chain.at(number)!, filter))
      return result(logs)
    }
    default:
      return failure(-32601, `the method ${method} does not exist/is not available`)
  }
}
