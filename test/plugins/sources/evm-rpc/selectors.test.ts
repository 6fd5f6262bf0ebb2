import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { encodeFunctionData, getAddress, keccak256, parseAbi, stringToHex } from "viem"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { SENDER, transactionHash } from "../../../../server/devnet/simulated/methods.ts"
import { type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import {
  addressOf,
  TRANSFER,
  TRANSFER_TOPIC,
  transfer,
  transfer721,
} from "../../../../server/devnet/simulated/transfer.ts"
import { idOf, jsonOf, makeSource, positions, quick, scan } from "./driver.ts"
import { callEach, callSelector, live, places, scanned, TRANSFER_CALL } from "./selector-support.ts"

const NFT = "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)"

/** Records the parameters of the calls of a method. */
const record = (node: SimulatedNode, method: string): ReadonlyArray<ReadonlyArray<any>> => {
  const seen: Array<ReadonlyArray<any>> = []
  const before = node.fault
  node.fault = (called, params) => {
    if (called === method) seen.push(params)
    return before(called, params)
  }
  return seen
}

describe("monitors of events", () => {
  live(
    "of several signatures yield the arguments of whichever came, with the id that they have alone",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(2, [transfer721(1, 2, 3, 4), transfer(1, 2, 3, 5)])
      const node = yield* simulatedNode(chain)
      const both: Selector = { kind: "event", event: [TRANSFER, NFT] }
      const events = yield* scanned(node, both, 1, 1)
      assert.deepStrictEqual(
        events.map((event) => jsonOf(both, event).args),
        [
          { from: getAddress(addressOf(2)), to: getAddress(addressOf(3)), tokenId: "4" },
          { from: getAddress(addressOf(2)), to: getAddress(addressOf(3)), value: "5" },
        ],
      )
      for (const [i, event] of [NFT, TRANSFER].entries()) {
        const alone: Selector = { kind: "event", event }
        const [found] = yield* scanned(node, alone, 1, 1)
        assert.strictEqual(idOf(both, events[i]!), idOf(alone, found!))
        assert.deepStrictEqual(jsonOf(both, events[i]!), jsonOf(alone, found!))
      }
    }),
  )

  live(
    "fetch no full blocks and no receipts",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain().mine(120, () => [transfer(1, 2, 3, 4)], callEach))
      const blocks = record(node, "eth_getBlockByNumber")
      assert.strictEqual((yield* scanned(node, { kind: "event", event: TRANSFER }, 1, 120)).length, 120)
      assert.isTrue(blocks.every(([, full]) => full === false))
      for (const method of ["eth_getBlockByHash", "eth_getBlockReceipts", "eth_getTransactionReceipt"])
        assert.strictEqual(node.count(method), 0, method)
    }),
  )

  live(
    "leave the values of indexed arguments to the node, by block hash and by range",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(100, (number) => [transfer(1, number, 3, 4), transfer(1, 99, number, 5)])
      const node = yield* simulatedNode(chain)
      const filters = record(node, "eth_getLogs")
      const selector: Selector = {
        kind: "event",
        event: TRANSFER,
        args: { from: [addressOf(20), addressOf(90)], to: addressOf(3) },
      }
      const events = yield* scanned(node, selector, 1, 100)
      assert.deepStrictEqual(positions(events), ["20:0", "90:0"])
      const word = (number: number) => `0x${number.toString(16).padStart(64, "0")}`
      assert.isTrue(filters.some(([filter]) => filter.blockHash !== undefined))
      assert.isTrue(filters.some(([filter]) => filter.fromBlock !== undefined))
      for (const [filter] of filters)
        assert.deepStrictEqual(filter.topics, [[TRANSFER_TOPIC], [word(20), word(90)], [word(3)]])
    }),
  )

  live(
    "know indexed values of every type by the topic that stands for them",
    Effect.gen(function* () {
      const event = "event Said(string indexed text, int8 indexed small, bytes4 indexed sig)"
      const args = { text: "Grüße", small: -1, sig: "0xDEADBEEF" }
      const selector: Selector = { kind: "event", event, args }
      const said = keccak256(stringToHex("Said(string,int8,bytes4)"))
      const hash = keccak256(stringToHex("Grüße"))
      const log = (small: string) => ({
        address: addressOf(1),
        topics: [said, hash, `0x${small.repeat(64)}`, `0xdeadbeef${"0".repeat(56)}`],
        data: "0x",
      })
      const node = yield* simulatedNode(new SimulatedChain().mine(1, [log("0"), log("f")]))
      const events = yield* scanned(node, selector, 1, 1)
      assert.deepStrictEqual(positions(events), ["1:1"])
      assert.deepStrictEqual(jsonOf(selector, events[0]!).args, { text: hash, small: "-1", sig: "0xdeadbeef" })
    }),
  )

  live(
    "with filters of their own take a log once, whichever filter lets it through",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain().mine(100, (number) => [transfer(1, 2, number, 4)]))
      const source = yield* makeSource({ ...quick, url: node.url })
      const batches = yield* scan(source, 1, 100, {
        version: 1,
        interests: [
          { id: "there", selector: { kind: "event", event: TRANSFER, address: addressOf(1) } },
          { id: "to 3", selector: { kind: "event", event: TRANSFER, args: { to: addressOf(3) } } },
        ],
      })
      const events = batches.flatMap(({ events }) => events)
      assert.strictEqual(events.length, 100)
      assert.deepStrictEqual(events[2]!.interests, ["there", "to 3"])
    }),
  )
})

describe("monitors of blocks", () => {
  live(
    "see every header, near the head and far from it, and fetch headers only",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(150, () => [transfer(1, 2, 3, 4)], callEach)
      const node = yield* simulatedNode(chain)
      const blocks = record(node, "eth_getBlockByNumber")
      const selector: Selector = { kind: "block" }
      const events = yield* scanned(node, selector, 0, 150)
      assert.deepStrictEqual(
        places(events),
        Array.from({ length: 151 }, (_, i) => `${i}:0`),
      )
      const { number, hash, parentHash, timestamp } = chain.at(7)!
      assert.deepStrictEqual(jsonOf(selector, events[7]!), {
        kind: "block",
        block: {
          number,
          hash,
          timestamp,
          parent_hash: parentHash,
          miner: getAddress(SENDER),
          transactions: 1,
          gas_used: "21000",
          gas_limit: "30000000",
          base_fee_per_gas: "7",
        },
      })
      assert.strictEqual(events[7]!.time, timestamp * 1000)
      assert.isTrue(blocks.every(([, full]) => full === false))
      const numbers = blocks.map(([tag]) => tag).filter((tag) => tag !== "latest")
      assert.strictEqual(new Set(numbers).size, numbers.length)
      for (const method of ["eth_getLogs", "eth_getBlockByHash", "eth_getBlockReceipts"])
        assert.strictEqual(node.count(method), 0, method)
    }),
  )

  live(
    "need of a header what identifies it, and show the rest as null",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain().mine(1))
      node.fault = (method, [tag]) =>
        method === "eth_getBlockByNumber"
          ? {
              result: {
                number: "0x0001",
                hash: `0x${"ab".repeat(32)}`,
                parentHash: `0x${"cd".repeat(32)}`,
                timestamp: "0x5",
                miner: "0x",
                gasUsed: null,
                size: null,
                ...(tag === "latest" ? {} : { baseFeePerGas: "none" }),
              },
            }
          : undefined
      const selector: Selector = { kind: "block" }
      const [event] = yield* scanned(node, selector, 1, 1)
      assert.deepStrictEqual(jsonOf(selector, event!).block, {
        number: 1,
        hash: `0x${"ab".repeat(32)}`,
        timestamp: 5,
        parent_hash: `0x${"cd".repeat(32)}`,
        miner: null,
        transactions: null,
        gas_used: null,
        gas_limit: null,
        base_fee_per_gas: null,
      })
    }),
  )
})

describe("monitors of transactions", () => {
  live(
    "see sender, receiver, value, input, status and creation",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(
        1,
        [],
        [
          { to: addressOf(2), value: 10n ** 30n, input: "0xABcd" },
          { to: null, from: addressOf(3), creates: addressOf(4) },
          { to: null, creates: addressOf(5), status: "reverted" },
          { to: addressOf(6), status: null },
        ],
      )
      const node = yield* simulatedNode(chain)
      const selector: Selector = { kind: "transaction" }
      const events = yield* scanned(node, selector, 0, 1)
      assert.deepStrictEqual(places(events), ["1:1", "1:2", "1:3", "1:4"])
      const block = { number: 1, hash: chain.at(1)!.hash, timestamp: chain.at(1)!.timestamp }
      const json = events.map((event) => jsonOf(selector, event))
      assert.deepStrictEqual(json[0], {
        kind: "transaction",
        from: getAddress(SENDER),
        to: getAddress(addressOf(2)),
        value: `${10n ** 30n}`,
        input: "0xabcd",
        status: "success",
        creates: null,
        transaction: { hash: transactionHash(chain.at(1)!, 0), index: 0 },
        block,
      })
      assert.deepInclude(json[1], { to: null, creates: getAddress(addressOf(4)), status: "success" })
      assert.deepInclude(json[2], { to: null, creates: null, status: "reverted" })
      assert.deepInclude(json[3], { status: null, value: "0", input: "0x" })
    }),
  )

  live(
    "take the types that chains have of their own",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1, [], [{ to: addressOf(1) }, { to: addressOf(2) }])
      const node = yield* simulatedNode(chain)
      const selector: Selector = { kind: "transaction" }
      node.fault = (method) =>
        method === "eth_getBlockByHash"
          ? {
              result: {
                number: "0x1",
                hash: chain.at(1)!.hash,
                parentHash: chain.at(1)!.parentHash,
                transactions: [
                  { type: "0x7e", hash: transactionHash(chain.at(1)!, 0), mint: "0x5", l1FeeScalar: null },
                  {
                    hash: transactionHash(chain.at(1)!, 1),
                    from: addressOf(9),
                    to: "0x",
                    value: "0x005",
                    data: "0x01",
                  },
                ],
              },
            }
          : undefined
      const events = yield* scanned(node, selector, 1, 1)
      const shown = events.map((event) => {
        const { from, to, value, input } = jsonOf(selector, event)
        return { from, to, value, input }
      })
      assert.deepStrictEqual(shown, [
        { from: null, to: null, value: null, input: "0x" },
        { from: getAddress(addressOf(9)), to: null, value: "5", input: "0x01" },
      ])
    }),
  )

  live(
    "ask for no receipts where no transaction concerns them, and yield nothing of blocks without transactions",
    Effect.gen(function* () {
      const chain = new SimulatedChain()
        .mine(90, [], callEach)
        .mine(10)
        .mine(1, [], [{ to: addressOf(7), value: 3 }])
      const node = yield* simulatedNode(chain)
      const events = yield* scanned(node, { kind: "transaction", min_value: 3 }, 0, 101)
      assert.deepStrictEqual(places(events), ["101:1"])
      assert.strictEqual(node.count("eth_getLogs"), 0)
      assert.strictEqual(node.count("eth_getBlockReceipts") + node.count("eth_getTransactionReceipt"), 1)
    }),
  )
})

describe("monitors of calls", () => {
  live(
    "decode the input and tell the status of that very transaction",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(
        100,
        () => [transfer(1, 2, 3, 4)],
        (number) => [{ to: addressOf(8) }, ...callEach(number), { to: addressOf(1), input: "0xa9059cbb00" }],
      )
      const node = yield* simulatedNode(chain)
      const events = yield* scanned(node, callSelector, 1, 100)
      const decodable = events.filter(({ cursor }) => cursor.secondary === 2)
      assert.strictEqual(decodable.length, 100)
      assert.deepStrictEqual(jsonOf(callSelector, decodable[34]!), {
        kind: "call",
        name: "transfer",
        signature: "transfer(address,uint256)",
        from: getAddress(SENDER),
        to: getAddress(addressOf(1)),
        value: "0",
        args: { to: getAddress(addressOf(2)), value: "35" },
        status: "reverted",
        transaction: { hash: transactionHash(chain.at(35)!, 1), index: 1 },
        block: { number: 35, hash: chain.at(35)!.hash, timestamp: chain.at(35)!.timestamp },
      })
      assert.strictEqual(jsonOf(callSelector, decodable[35]!).status, "success")
      for (const event of events) if (event.cursor.secondary === 3) assert.throws(() => event.fields(), /bytes/)
    }),
  )

  live(
    "of several functions yield the arguments of whichever came",
    Effect.gen(function* () {
      const both: Selector = { kind: "call", function: [TRANSFER_CALL, "function stop()"] }
      const [stop] = encodeFunctionData({ abi: parseAbi(["function stop()"]) }).match(/0x.{8}/)!
      const chain = new SimulatedChain().mine(1, [], [{ to: addressOf(1), input: stop! }, ...callEach(1)])
      const node = yield* simulatedNode(chain)
      const events = yield* scanned(node, both, 1, 1)
      assert.deepStrictEqual(
        events.map((event) => jsonOf(both, event)).map(({ name, args }) => [name, args]),
        [
          ["stop", {}],
          ["transfer", { to: getAddress(addressOf(2)), value: "1" }],
        ],
      )
      const alone = yield* scanned(node, callSelector, 1, 1)
      assert.strictEqual(idOf(both, events[1]!), idOf(callSelector, alone[0]!))
    }),
  )
})
