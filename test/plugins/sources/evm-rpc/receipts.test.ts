import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { startOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { transactionHash } from "../../../../server/devnet/simulated/methods.ts"
import { type FaultHook, type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, quick, scan, secretsFrom, until, watching } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const all: Selector = { kind: "transaction" }
const some: Selector = { kind: "transaction", to: addressOf(2) }

/** Three transactions in each block; the second one reverts, and its block has logs of the others. */
const mined = () =>
  new SimulatedChain().mine(
    100,
    () => [transfer(1, 2, 3, 4), { ...transfer(1, 2, 3, 4), transaction: null }, transfer(1, 2, 3, 4)],
    [{ to: addressOf(1) }, { to: addressOf(2), status: "reverted" }, { to: addressOf(3) }],
  )

const statuses = (events: ReadonlyArray<SourceEvent>) => new Set(events.map((event) => event.fields()["status"]))

const scanned = Effect.fnUntraced(function* (nodes: ReadonlyArray<SimulatedNode>, selector: Selector) {
  const source = yield* makeSource({ ...quick, urls: nodes.map(({ url }) => url) })
  const batches = yield* scan(source, 1, 100, watching(selector))
  return batches.flatMap(({ events }) => events)
})

const only =
  (method: string, fault: ReturnType<FaultHook>): FaultHook =>
  (called) =>
    called === method ? fault : undefined

describe("the status of a transaction", () => {
  live(
    "is that of its own receipt, whatever else its block holds",
    Effect.gen(function* () {
      const node = yield* simulatedNode(mined())
      const events = yield* scanned([node], all)
      assert.strictEqual(events.length, 300)
      for (const event of events)
        assert.strictEqual(event.fields()["status"], event.cursor.secondary === 2 ? "reverted" : "success")
    }),
  )

  live(
    "comes with all receipts of a block where several transactions may match, and alone where one may",
    Effect.gen(function* () {
      const [one, other] = [yield* simulatedNode(mined()), yield* simulatedNode(mined())]
      yield* scanned([one], all)
      assert.strictEqual(one.count("eth_getBlockReceipts"), 100)
      assert.strictEqual(one.count("eth_getTransactionReceipt"), 0)
      const events = yield* scanned([other], some)
      assert.deepStrictEqual(statuses(events), new Set(["reverted"]))
      assert.strictEqual(other.count("eth_getBlockReceipts"), 0)
      assert.strictEqual(other.count("eth_getTransactionReceipt"), 100)
    }),
  )

  const unknown = [
    ["does not know the method", { error: { code: -32601, message: "the method does not exist" } }],
    ["refuses the method", { error: { code: -32000, message: "not on this plan" } }],
  ] as const
  for (const [what, fault] of unknown)
    live(
      `comes transaction by transaction from a node that ${what} for whole blocks, which is asked for them once`,
      Effect.gen(function* () {
        const node = yield* simulatedNode(mined())
        node.fault = only("eth_getBlockReceipts", fault)
        assert.strictEqual((yield* scanned([node], all)).length, 300)
        // the two ranges far from the head are read at once, and ask for at most eight blocks before they know
        assert.isAtMost(node.count("eth_getBlockReceipts"), 2 * 8)
        assert.strictEqual(node.count("eth_getTransactionReceipt"), 300)
      }),
    )

  live(
    "of a transaction that is not among the receipts of its block is asked for by itself",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      node.fault = (method, [tag]) => {
        if (method !== "eth_getBlockReceipts") return undefined
        return { result: Number(tag) % 2 === 0 ? [] : null }
      }
      const events = yield* scanned([node], all)
      assert.deepStrictEqual(statuses(events), new Set(["success", "reverted"]))
      assert.strictEqual(node.count("eth_getTransactionReceipt"), 300)
    }),
  )

  live(
    "is asked of another node when one does not have the receipt yet",
    Effect.gen(function* () {
      const [behind, well] = [yield* simulatedNode(mined()), yield* simulatedNode(mined())]
      behind.fault = only("eth_getTransactionReceipt", { result: null })
      assert.deepStrictEqual(statuses(yield* scanned([behind, well], some)), new Set(["reverted"]))
      assert.isAbove(behind.count("eth_getTransactionReceipt"), 0)
    }),
  )

  live(
    "is waited for while no node has the receipt, and the blocks before are handed over",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const late = transactionHash(chain.at(98)!, 1)
      node.fault = (method, [hash]) =>
        method === "eth_getTransactionReceipt" && hash === late ? { result: null } : undefined
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { interests: watching(some) })
      yield* until("it is told", () => driven.trouble !== null)
      assert.match(driven.trouble!, new RegExp(`does not have the receipt of transaction ${late} in block 98`))
      assert.isAbove(driven.upTo, 30)
      assert.isBelow(driven.upTo, 98)
      node.fault = () => undefined
      yield* until("it goes on", () => driven.upTo === 100)
      assert.strictEqual(driven.events.length, 100)
    }),
  )

  live(
    "is not taken from the receipt that the transaction has in another block",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      let wrong = true
      node.fault = (method, [hash]) =>
        wrong && method === "eth_getTransactionReceipt"
          ? { result: { transactionHash: hash, blockHash: `0x${"ee".repeat(32)}`, status: "0x1" } }
          : undefined
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { interests: watching(some) })
      yield* until("it is told", () => driven.trouble !== null)
      assert.match(driven.trouble!, /the receipts of block 1 belong to another block/)
      assert.strictEqual(driven.events.length, 0)
      wrong = false
      yield* until("it goes on", () => driven.upTo === 100)
      assert.deepStrictEqual(statuses(driven.events), new Set(["reverted"]))
    }),
  )
})

describe("a full block", () => {
  const broken: ReadonlyArray<readonly [string, (block: any) => unknown, RegExp]> = [
    [
      "without its transactions",
      (block) => ({ ...block, transactions: undefined }),
      /transactions of a block should be a list/,
    ],
    [
      "with hashes in place of transactions",
      (block) => ({ ...block, transactions: [`0x${"ab".repeat(32)}`] }),
      /should be an object/,
    ],
    ["of another hash", (block) => ({ ...block, hash: `0x${"ab".repeat(32)}` }), /another block 100 was answered/],
    ["that is not there", () => null, /does not have block 100/],
  ]
  for (const [what, spoil, reason] of broken)
    live(
      `${what} is no block without transactions: it is asked for again`,
      Effect.gen(function* () {
        const chain = mined()
        const node = yield* simulatedNode(chain)
        const full = (yield* Effect.promise(() => rawBlock(node, chain.at(100)!.hash))) as object
        node.fault = (method, [hash]) =>
          method === "eth_getBlockByHash" && hash === chain.at(100)!.hash ? { result: spoil(full) } : undefined
        const source = yield* makeSource({ ...quick, url: node.url })
        const { driven } = yield* drive(source, { interests: watching(some) })
        yield* until("it is told", () => driven.trouble !== null)
        assert.match(driven.trouble!, reason)
        node.fault = () => undefined
        yield* until("it goes on", () => driven.upTo === 100)
        assert.strictEqual(driven.events.length, 100)
      }),
    )

  live(
    "without the list is one without transactions if its root says so",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(100)
      const node = yield* simulatedNode(chain)
      const root = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
      const full = (yield* Effect.promise(() => rawBlock(node, chain.at(100)!.hash))) as object
      node.fault = (method, [hash]) =>
        method === "eth_getBlockByHash" && hash === chain.at(100)!.hash
          ? { result: { ...full, transactions: null, transactionsRoot: root } }
          : undefined
      assert.deepStrictEqual(yield* scanned([node], all), [])
    }),
  )

  const both = {
    version: 1,
    interests: [
      { id: "some", selector: some },
      { id: "logs", selector: { kind: "event" as const, event: TRANSFER } },
    ],
  }
  const other = `0x${"ab".repeat(32)}`

  const torn: ReadonlyArray<readonly [string, (chain: SimulatedChain) => FaultHook, RegExp]> = [
    [
      "the block before",
      (chain) =>
        (method, [tag, full]) =>
          method === "eth_getBlockByNumber" && tag === "0x14" && full === true
            ? {
                result: {
                  number: "0x14",
                  hash: other,
                  parentHash: chain.at(19)!.hash,
                  timestamp: "0x1",
                  transactions: [],
                },
              }
            : undefined,
      /block 21 does not follow block 20/,
    ],
    [
      "the logs",
      () =>
        (method, [filter]) =>
          method === "eth_getLogs" && filter.fromBlock === "0x1"
            ? {
                result: [
                  {
                    ...transfer(1, 2, 3, 4),
                    blockNumber: "0x5",
                    blockHash: other,
                    blockTimestamp: "0x5",
                    logIndex: "0x0",
                  },
                ],
              }
            : undefined,
      /the logs of block 5 belong to another block/,
    ],
  ]
  for (const [what, fault, reason] of torn)
    live(
      `that is of another chain than ${what} is not taken`,
      Effect.gen(function* () {
        const chain = mined()
        const node = yield* simulatedNode(chain)
        const source = yield* makeSource({ ...quick, url: node.url })
        node.fault = fault(chain)
        const { driven } = yield* drive(source, { cursor: startOf(1), interests: both })
        yield* until("it is told", () => driven.trouble !== null)
        assert.match(driven.trouble!, reason)
        node.fault = () => undefined
        yield* until("it goes on", () => driven.upTo === 100)
        assert.strictEqual(driven.events.length, 400)
      }),
    )
})

/** A block with its transactions, as the node answers it. */
const rawBlock = async (node: SimulatedNode, hash: string): Promise<unknown> => {
  const response = await fetch(node.url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBlockByHash", params: [hash, true] }),
  })
  return ((await response.json()) as { readonly result: unknown }).result
}
