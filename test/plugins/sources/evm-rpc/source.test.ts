import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { startOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer, transfer721 } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, scan, secretsFrom, transferInterests, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

/** One transfer in each block, whose value is the block's number. */
const oneEach = (number: number) => [transfer(1, 2, 3, number)]

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

describe("the way from the past to the head", () => {
  live(
    "every block is handed over once, in order, across the border between backfill and live",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, oneEach)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 40 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 300)
      chain.mine(1, oneEach)
      yield* until("a new block is seen", () => driven.upTo === 301)
      chain.mine(5, oneEach)
      yield* until("more new blocks are seen", () => driven.upTo === 306)
      assert.deepStrictEqual(
        positions(driven.events),
        Array.from({ length: 306 }, (_, i) => `${i + 1}:0`),
      )
      assert.deepStrictEqual(
        driven.events.map((event) => (event.fields()["args"] as any).value),
        Array.from({ length: 306 }, (_, i) => BigInt(i + 1)),
      )
      assert.strictEqual(driven.head?.primary, 306)
      assert.deepStrictEqual(driven.troubles, [])
      for (const [i, { events, upTo }] of driven.batches.entries()) {
        const after = driven.batches[i - 1]?.upTo.primary ?? -1
        assert.isTrue(events.every(({ cursor }) => cursor.primary > after && cursor.primary <= upTo.primary))
      }
    }),
  )

  live(
    "anchors are the range ends far from the head and every block near it",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 50 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 200)
      const anchors = driven.anchors.map(({ primary }) => primary)
      assert.deepStrictEqual(anchors.slice(64), [136, 99, 49])
      assert.deepStrictEqual(
        anchors.slice(0, 64),
        Array.from({ length: 64 }, (_, i) => 200 - i),
      )
      assert.isTrue(driven.anchors.every(({ primary, hash }) => chain.at(primary)!.hash === hash))
    }),
  )

  live(
    "with confirmations, only blocks deep enough are handed over",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, oneEach)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: 5 })
      const { driven } = yield* drive(source)
      yield* until("block 15 is handed over", () => driven.upTo === 15)
      chain.mine(1)
      yield* until("block 16 is handed over", () => driven.upTo === 16)
      assert.strictEqual(driven.head?.primary, 21)
    }),
  )

  live(
    "`finalized` follows the tag, also when the tag is gone for a while",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(120, oneEach)
      chain.finalized = 100
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: "finalized" })
      const { driven } = yield* drive(source)
      yield* until("block 100 is handed over", () => driven.upTo === 100)
      chain.finalized = null
      chain.mine(100, oneEach)
      yield* until("the head moved on", () => driven.head?.primary === 220)
      assert.strictEqual(driven.upTo, 100)
      chain.finalized = 210
      yield* until("block 210 is handed over", () => driven.upTo === 210)
    }),
  )

  live(
    "at a node that does not know `safe`, a depth stands for it",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(120, oneEach)
      const node = yield* simulatedNode(chain)
      node.tags = false
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: "safe" })
      const { driven } = yield* drive(source)
      yield* until("block 88 is handed over", () => driven.upTo === 88)
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "no more ranges are read ahead than a few while the pipeline is full",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1000, oneEach)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 10 })
      const { driven } = yield* drive(source)
      driven.accepting = false
      yield* until("a batch waits", () => driven.waiting === 1)
      const before = node.count("eth_getLogs")
      yield* Effect.sleep("100 millis")
      assert.isAtMost(node.count("eth_getLogs"), Math.max(before, 8))
      driven.accepting = true
      yield* until("the head is reached", () => driven.upTo === 1000)
      assert.strictEqual(driven.events.length, 1000)
    }),
  )

  live(
    "a batch names the version of the interests that it was fetched for",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, oneEach)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { interests: { version: 1, interests: [] } })
      yield* until("the head is reached", () => driven.upTo === 10)
      assert.strictEqual(driven.events.length, 0)
      assert.strictEqual(node.count("eth_getLogs"), 0)
      driven.interests = transferInterests(2)
      chain.mine(1, oneEach)
      yield* until("a new block is seen", () => driven.upTo === 11)
      assert.deepStrictEqual(positions(driven.events), ["11:0"])
      assert.strictEqual(driven.batches.at(-1)!.interests, 2)
      assert.strictEqual(driven.batches.at(0)!.interests, 1)
    }),
  )

  live(
    "a cursor in the middle of a block is continued behind it",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, (number) => [
        ...oneEach(number),
        ...oneEach(number),
        ...oneEach(number),
      ])
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, {
        cursor: { primary: 2, secondary: 2 ** 20 + 1 },
        anchors: [{ primary: 2, hash: chain.at(2)!.hash }],
      })
      yield* until("the head is reached", () => driven.upTo === 3)
      assert.deepStrictEqual(positions(driven.events), ["2:2", "3:0", "3:1", "3:2"])
    }),
  )
})

describe("start", () => {
  const starts: ReadonlyArray<readonly [unknown, number]> = [
    ["latest", 20],
    ["latest-5", 15],
    ["latest-100", 0],
    ["earliest", 0],
    [7, 7],
  ]
  for (const [start, first] of starts)
    live(
      `"${start}" of 20 blocks begins with block ${first}`,
      Effect.gen(function* () {
        const node = yield* simulatedNode(new SimulatedChain().mine(20))
        const source = yield* makeSource({ ...quick, url: node.url, start })
        assert.deepStrictEqual(yield* source.start, startOf(first))
      }),
    )

  live(
    "another chain id is refused with both ids",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain({ chainId: 5 }))
      const source = yield* makeSource({ ...quick, url: node.url })
      const error = yield* Effect.flip(source.start)
      assert.strictEqual(error._tag, "SourceRefused")
      assert.match(error.message, /chain 5.*chain_id is 1/)
    }),
  )

  live(
    "a node that is away is unavailable, not refused",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain())
      const source = yield* makeSource({ ...quick, url: node.url })
      yield* Effect.promise(() => node.stop())
      const error = yield* Effect.flip(source.start)
      assert.strictEqual(error._tag, "SourceUnavailable")
      assert.include(error.message, `127.0.0.1:${node.port}`)
    }),
  )
})

const transfersAt = (id: string, address: string | ReadonlyArray<string>) => ({
  id,
  selector: { kind: "event" as const, event: TRANSFER, address },
})

describe("what is asked for and what comes of it", () => {
  live(
    "addresses and first topics of all interests are left to the node",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, () => [transfer(1, 2, 3, 4), transfer(9, 2, 3, 4)])
      const node = yield* simulatedNode(chain)
      const filters: Array<any> = []
      node.fault = (method, [filter]) => {
        if (method === "eth_getLogs") filters.push(filter)
        return undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url })
      const batches = yield* scan(source, 1, 3, {
        version: 3,
        interests: [transfersAt("one", addressOf(1)), transfersAt("both", [addressOf(1), addressOf(9)])],
      })
      assert.deepStrictEqual(filters[0].address, [addressOf(1), addressOf(9)])
      assert.strictEqual(filters[0].topics[0].length, 1)
      const events = batches.flatMap(({ events }) => events)
      assert.deepStrictEqual(
        events.map(({ interests }) => interests),
        Array.from({ length: 3 }, () => [["one", "both"], ["both"]]).flat(),
      )
    }),
  )

  live(
    "ERC-20 and ERC-721 transfers are told apart by their topics",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1, [transfer721(1, 2, 3, 4), transfer(1, 2, 3, 5)])
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const events = (yield* scan(source, 1, 1)).flatMap(({ events }) => events)
      assert.deepStrictEqual(positions(events), ["1:1"])
    }),
  )

  live(
    "a log without a transaction is matched, with `transaction` null",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1, [{ ...transfer(1, 2, 3, 4), transaction: null }])
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const events = (yield* scan(source, 1, 1)).flatMap(({ events }) => events)
      assert.strictEqual(events[0]!.fields()["transaction"], null)
    }),
  )

  live(
    "timestamps come from the blocks where logs do not tell them",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200, (number) => (number % 3 === 0 ? oneEach(number) : []))
      const node = yield* simulatedNode(chain)
      node.blockTimestamps = false
      const source = yield* makeSource({ ...quick, url: node.url })
      const events = (yield* scan(source, 1, 200)).flatMap(({ events }) => events)
      assert.strictEqual(events.length, 66)
      for (const event of events) assert.strictEqual(event.time, chain.at(event.cursor.primary)!.timestamp * 1000)
    }),
  )

  live(
    "a scan beyond the head is unavailable and says where the head is",
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain().mine(5))
      const source = yield* makeSource({ ...quick, url: node.url })
      const error = (yield* Effect.flip(scan(source, 1, 9))) as Error
      assert.match(error.message, /block 9 is not on the chain yet; the newest one is 5/)
    }),
  )
})
