import { Effect } from "effect"
import { blockByNumber, changed, headerAt, lacks } from "./block-reads.ts"
import { type Log, readLogs } from "./logs.ts"
import { blockReceipts } from "./receipts.ts"
import type { Answer } from "./rpc/client.ts"
import { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import { MalformedAnswer, readHash, readObject } from "./wire.ts"

/** Blocks that follow each other, of a range whose last block's hash is known, and maybe those of others. */
export interface KnownBlocks {
  readonly from: number
  readonly to: number
  /** The last block of the range that they belong to. */
  readonly end: number
  readonly hashes: ReadonlyMap<number, string>
}

/**
 * All logs of blocks, as their receipts have them. Fails if the provider lacks them or has other blocks: where a block's own
 * hash is not known, the provider must have the known end of its range.
 */
export const logsOfReceipts = Effect.fnUntraced(function* (
  provider: Provider,
  { from, to, end, hashes }: KnownBlocks,
): Effect.fn.Return<ReadonlyArray<Log>, RpcFailure> {
  if (provider.blockReceipts === "lacks") return yield* provider.client.failure("unsupported", NO_RECEIPTS)
  const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const areKnown = numbers.every((number) => hashes.has(number))
  const answers = yield* provider.client.batch([
    ...numbers.map(blockReceipts),
    ...(areKnown ? [] : [blockByNumber(end)]),
  ])
  if (!areKnown) {
    const header = yield* headerAt(provider, answers.at(-1)!, end)
    if (header === null) return yield* lacks(provider, end)
    if (header.hash !== hashes.get(end)) return yield* changed(provider, `the node has another block ${end}`)
  }
  const logs: Array<Log> = []
  for (const [i, number] of numbers.entries())
    logs.push(...(yield* blockLogs(provider, answers[i]!, number, hashes.get(number))))
  return logs
})

const NO_RECEIPTS = "eth_getBlockReceipts: the node does not have the method"

const blockLogs = Effect.fnUntraced(function* (
  provider: Provider,
  answer: Answer,
  number: number,
  hash: string | undefined,
): Effect.fn.Return<ReadonlyArray<Log>, RpcFailure> {
  const receipts = yield* Effect.fromResult(answer).pipe(
    Effect.catchIf(
      ({ kind }) => kind === "refused" || kind === "unsupported",
      ({ kind, reason }) => {
        // What is refused of one that has the method is that block: nothing is wrong with the rest that it answers.
        if (kind === "refused" && provider.blockReceipts === "answers")
          return Effect.fail(new RpcFailure({ kind: "missing", reason }))
        provider.blockReceipts = "lacks"
        return Effect.fail(provider.client.failure("unsupported", NO_RECEIPTS))
      },
    ),
  )
  provider.blockReceipts = "answers"
  if (receipts === null) return yield* lacks(provider, number)
  const { logs, blockHash } = yield* provider.client.read(() => readReceiptLogs(receipts, number))
  if (hash !== undefined && blockHash !== null && blockHash !== hash)
    return yield* changed(provider, `the receipts of block ${number} belong to another block of that number`)
  return logs
})

/** The logs of a block's receipts, and the hash that all of these name; null if there are none. */
const readReceiptLogs = (receipts: unknown, number: number) => {
  if (!Array.isArray(receipts))
    throw new MalformedAnswer("the receipts of a block should be a list, but are something else")
  let blockHash: string | null = null
  const raw: Array<unknown> = []
  for (const one of receipts) {
    const receipt = readObject(one, "a receipt")
    const hash = readHash(receipt["blockHash"], "the blockHash of a receipt")
    if (blockHash !== null && hash !== blockHash)
      throw new MalformedAnswer(`the receipts of block ${number} name two different blocks`)
    blockHash = hash
    if (!Array.isArray(receipt["logs"])) throw new MalformedAnswer("the logs of a receipt should be a list")
    raw.push(...receipt["logs"])
  }
  const { logs } = readLogs(raw, number, number)
  if (logs.some((log) => log.blockHash !== blockHash))
    throw new MalformedAnswer(`logs in the receipts of block ${number} name another block`)
  return { logs, blockHash }
}
