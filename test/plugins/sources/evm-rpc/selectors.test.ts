import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { encodeFunctionData, getAddress, keccak256, parseAbi, stringToHex } from "viem"
import { endOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../support/simulator/chain.ts"
import { SENDER, transactionHash } from "../../../support/simulator/methods.ts"
import { type SimulatedNode, simulatedNode } from "../../../support/simulator/node.ts"
import { addressOf, TRANSFER, TRANSFER_TOPIC, transfer, transfer721 } from "../../../support/simulator/transfer.ts"
import {
  drive,
  idOf,
  jsonOf,
  makeSource,
  outside,
  positions,
  quick,
  scan,
  secretsFrom,
  until,
  watching,
} from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const TRANSFER_CALL = "function transfer(address to, uint256 value)"
const NFT = "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)"

const callData = (to: string, value: number | bigint) =>
  encodeFunctionData({ abi: parseAbi([TRANSFER_CALL]), args: [getAddress(to), BigInt(value)] })

/** A call of the token 1 in each block, whose value is the block's number; it reverts in odd blocks. */
const callEach = (number: number) => [
  {
    to: addressOf(1),
    input: callData(addressOf(2), number),
    status: number % 2 === 0 ? ("success" as const) : ("reverted" as const),
  },
]

const callSelector: Selector = { kind: "call", function: TRANSFER_CALL, address: addressOf(1) }

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

const scanned = Effect.fnUntraced(function* (node: SimulatedNode, selector: Selector, from: number, to: number) {
  const source = yield* makeSource({ ...quick, url: node.url })
  const batches = yield* scan(source, from, to, watching(selector))
  return batches.flatMap(({ events }) => events)
})

const places = (events: ReadonlyArray<SourceEvent>) =>
  events.map(({ cursor }) => `${cursor.primary}:${cursor.secondary}`)

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

describe("the ids of matches", () => {
  live(
    "are frozen for every kind",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, [transfer(1, 2, 3, 4)], callEach)
      const node = yield* simulatedNode(chain)
      const selectors: ReadonlyArray<Selector> = [
        { kind: "event", event: TRANSFER },
        callSelector,
        { kind: "transaction" },
        { kind: "block" },
      ]
      const ids: Array<string> = []
      for (const selector of selectors) {
        const [event] = yield* scanned(node, selector, 2, 2)
        ids.push(`${event!.cursor.secondary} ${idOf(selector, event!)}`)
      }
      assert.deepStrictEqual(ids, [
        "1048576 2d99d697e7d82708555c9ff8a9d1178e4e9feca74e94f194b23326eae6e3ce68",
        "1 cb91c63c4150638a68a5fc2480d9d3a1a741673d4b3c994254e4df565c85aa65",
        "1 906f7345b9117a8ffbebe785f72afdf0ba108853350449ca21c72dae360aa7e1",
        "0 5fca9419f5f53cdcb32ddfb7108977a5b16aff6e76f419273919e1fe8897badd",
      ])
    }),
  )
})

describe("several kinds on one network", () => {
  const selectors: ReadonlyArray<Selector> = [
    { kind: "block" },
    { kind: "transaction" },
    callSelector,
    { kind: "event", event: TRANSFER },
  ]
  const all = {
    version: 1,
    interests: selectors.map((selector) => ({ id: selector.kind, selector })),
  }
  const mined = () => new SimulatedChain().mine(120, () => [transfer(1, 2, 3, 4)], callEach)

  live(
    "come in the order of their places, live as scanned, also behind a cursor inside a block",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 40 })
      const { driven } = yield* drive(source, { interests: all })
      yield* until("the head is reached", () => driven.upTo === 120)
      chain.mine(3, () => [transfer(1, 2, 3, 4)], callEach)
      yield* until("new blocks are seen", () => driven.upTo === 123)
      const told = driven.events.map(({ cursor, interests }) => `${cursor.primary}:${cursor.secondary} ${interests}`)
      const block = (number: number) => [
        `${number}:0 block`,
        `${number}:1 transaction`,
        `${number}:1 call`,
        `${number}:${2 ** 20} event`,
      ]
      assert.deepStrictEqual(told, ["0:0 block", ...Array.from({ length: 123 }, (_, i) => block(i + 1)).flat()])
      assert.deepStrictEqual(driven.troubles, [])

      const second = yield* drive(source, {
        cursor: { primary: 60, secondary: 1 },
        anchors: driven.anchors.filter(({ primary }) => primary <= 60),
        interests: all,
      })
      yield* until("the head is reached again", () => second.driven.upTo === 123)
      assert.deepStrictEqual(places(second.driven.events).slice(0, 2), [`60:${2 ** 20}`, "61:0"])
    }),
  )

  live(
    "are taken back and read again when the chain reorganises",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const first = yield* drive(source, { interests: all })
      yield* until("the head is reached", () => first.driven.upTo === 120)
      const last = (events: ReadonlyArray<SourceEvent>) =>
        events
          .filter(({ cursor }) => cursor.primary === 120)
          .map((event) =>
            idOf(
              selectors.find(({ kind }) => kind === event.interests[0])!,
              event,
            ),
          )
      chain.reorg(4, { logs: "same", transactions: callEach })
      yield* until("the run ends", () => first.driven.exit !== undefined)
      const from = endOf(116)
      assert.deepStrictEqual((first.driven.outcome as any).from, from)
      const anchors = first.driven.anchors.filter(({ primary }) => primary <= 116)
      const second = yield* drive(source, { cursor: from, anchors, interests: all })
      yield* until("the head is reached again", () => second.driven.upTo === 120)
      assert.strictEqual(second.driven.events.length, 16)
      const ids = [...last(first.driven.events), ...last(second.driven.events)]
      assert.strictEqual(new Set(ids).size, 8)
    }),
  )

  live(
    "take effect with the interests, without what they need being fetched before",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { interests: watching({ kind: "event", event: TRANSFER }) })
      yield* until("the head is reached", () => driven.upTo === 120)
      assert.strictEqual(node.count("eth_getBlockByHash"), 0)
      driven.interests = { ...all, version: 2 }
      chain.mine(1, [], callEach)
      yield* until("a new block is seen", () => driven.upTo === 121)
      assert.deepStrictEqual(places(driven.events).slice(-3), ["121:0", "121:1", "121:1"])
    }),
  )
})
