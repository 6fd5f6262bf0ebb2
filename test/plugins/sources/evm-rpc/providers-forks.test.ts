import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { endOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { otherHashes, ownFork, staysBehind, tagsGoDown } from "../../../../server/devnet/simulated/faults/chain.ts"
import { overloaded } from "../../../../server/devnet/simulated/faults/limits.ts"
import { drops } from "../../../../server/devnet/simulated/faults/transport.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, idOf, makeSource, outside, positions, quick, scan, secretsFrom, until, watching } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]

/** A node that stands still at block 24 of a fork that the chain left at block 20, and one that goes on with the chain. */
const staleAndGood = Effect.fnUntraced(function* (head: number) {
  const chain = new SimulatedChain().mine(24, valued)
  const [stale, good] = [yield* simulatedNode(chain.fork()), yield* simulatedNode(chain)]
  chain.reorg(4, { length: head - 20, logs: valued })
  return { chain, stale, good }
})

const anchorsOf = (chain: SimulatedChain, to: number) =>
  Array.from({ length: to }, (_, i) => ({ primary: to - i, hash: chain.at(to - i)!.hash }))

const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

describe("what looks like a fork", () => {
  live(
    "two providers 25 blocks apart, asked in turn: nothing is taken back",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const [first, behind] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      behind.misbehave(staysBehind(25))
      const source = yield* makeSource({ ...quick, urls: [first.url, behind.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 50)
      for (let i = 0; i < 2; i++) {
        const asked = behind.count("eth_getBlockByNumber")
        const heal = first.misbehave(drops())
        yield* until("the one behind is asked", () => behind.count("eth_getBlockByNumber") > asked + 2)
        heal()
        chain.mine(1, valued)
        yield* until("the next block is read", () => driven.upTo === chain.head.number)
      }
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(positions(driven.events), all(52))
    }),
  )

  live(
    "a provider that stays on a fork of its own: it is left aside each time, and the chain is followed",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const source = yield* makeSource({ ...quick, urls: [liar.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      liar.misbehave(ownFork(1, 3))
      for (let i = 0; i < 8; i++) {
        chain.mine(1, valued)
        yield* until("the next block is read", () => driven.upTo === chain.head.number)
        yield* Effect.sleep("200 millis") // long enough for the liar to be tried again now and then
      }
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(positions(driven.events), all(38))
      assert.isTrue(driven.anchors.every(({ primary, hash }) => chain.at(primary)!.hash === hash))
    }),
  )

  live(
    "a provider that stays on a dead fork while another one tells of a fork further up: no more than that is taken back",
    Effect.gen(function* () {
      for (const isFirst of [true, false]) {
        const { chain, stale, good } = yield* staleAndGood(30)
        const anchors = anchorsOf(chain, 30)
        chain.reorg(3, { length: 4 })
        const urls = isFirst ? [stale.url, good.url] : [good.url, stale.url]
        const { driven } = yield* drive(yield* makeSource({ ...quick, urls }), { cursor: endOf(30), anchors })
        yield* until("the run ends", () => driven.exit !== undefined)
        assert.deepStrictEqual((driven.outcome as any).from, endOf(27))
      }
    }),
  )

  live(
    "a provider that stays on a dead fork is not read by a run that begins below it",
    Effect.gen(function* () {
      for (const head of [25, 40]) {
        const { chain, stale, good } = yield* staleAndGood(head)
        const source = yield* makeSource({ ...quick, urls: [stale.url, good.url] })
        const { driven } = yield* drive(source, { cursor: endOf(20), anchors: anchorsOf(chain, 20) })
        yield* until("the head is reached", () => driven.upTo === head || driven.exit !== undefined)
        assert.strictEqual(driven.exit, undefined)
        assert.isTrue(driven.anchors.every(({ primary, hash }) => chain.at(primary)!.hash === hash))
      }
    }),
  )

  live(
    "a provider on a fork of its own, deeper than a reorganisation is expected to reach: no range of it goes on from another's",
    Effect.gen(function* () {
      for (const isFirst of [true, false]) {
        const chain = new SimulatedChain().mine(150, valued)
        const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
        liar.misbehave(ownFork(1, 120))
        const urls = isFirst ? [liar.url, good.url] : [good.url, liar.url]
        const { driven } = yield* drive(yield* makeSource({ ...quick, urls, max_block_range: 10 }))
        yield* until("the head is reached", () => driven.upTo === 150 || driven.exit !== undefined)
        const forks = driven.anchors.filter(({ primary }) => primary > 30)
        assert.strictEqual(new Set(forks.map(({ primary, hash }) => chain.at(primary)!.hash === hash)).size, 1)
      }
    }),
  )

  live(
    "that a rewind leads back into a range of: it is found where the feed goes on behind",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(110, valued)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      liar.misbehave(ownFork(1, 90))
      const { driven, stop } = yield* drive(yield* makeSource({ ...quick, url: liar.url }))
      yield* until("the head is reached", () => driven.upTo === 110)
      yield* stop
      const anchors = driven.anchors.filter(({ primary }) => primary <= 40)
      for (const urls of [[good.url], [liar.url, good.url]]) {
        const rewound = yield* drive(yield* makeSource({ ...quick, urls }), { cursor: endOf(40), anchors })
        if (urls.length === 2) {
          yield* until("it reads on", () => rewound.driven.upTo > 40)
          liar.misbehave(drops())
        }
        yield* until("the fork is found", () => rewound.driven.exit !== undefined)
        assert.deepStrictEqual((rewound.driven.outcome as any).from, endOf(20))
      }
    }),
  )

  live(
    "a provider whose head has another hash now and then",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      liar.misbehave(otherHashes(3, 0.5))
      const source = yield* makeSource({ ...quick, urls: [liar.url, good.url] })
      const { driven } = yield* drive(source)
      for (let i = 0; i < 10; i++) {
        yield* until("the head is read", () => driven.upTo === chain.head.number)
        chain.mine(1, valued)
      }
      assert.strictEqual(driven.exit, undefined)
      assert.isTrue(driven.anchors.every(({ primary, hash }) => chain.at(primary)!.hash === hash))
    }),
  )
})

describe("a transaction", () => {
  live(
    "that a fork mines again in another block is another match, with another id",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1)
      const { hash } = chain.pool.add({ from: addressOf(1), to: addressOf(2), value: 5 })
      chain.mine(1, [], chain.pool.take())
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const selector = { kind: "transaction" as const, to: addressOf(2) }
      const read = Effect.map(scan(source, 1, 2, watching(selector)), (batches) =>
        batches.flatMap(({ events }) => events),
      )
      const [before] = yield* read
      chain.reorg(1, { transactions: [] })
      assert.deepStrictEqual(yield* read, [])
      chain.reorg(1, { transactions: chain.pool.take() })
      const [after] = yield* read
      assert.deepStrictEqual(
        [before, after].map((event) => (event!.fields()["transaction"] as any).hash),
        [hash, hash],
      )
      assert.notStrictEqual(idOf(selector, before!), idOf(selector, after!))
    }),
  )
})

describe("a node that recovers", () => {
  live(
    "from answers of overload is followed again by itself",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const heal = node.misbehave(overloaded())
      const { driven } = yield* drive(source)
      yield* until("the trouble is told", () => driven.trouble !== null)
      assert.match(driven.trouble!, /no backend is currently healthy/)
      heal()
      yield* until("the head is reached", () => driven.upTo === 10)
      yield* until("the trouble is over", () => driven.trouble === null)
      assert.deepStrictEqual(positions(driven.events), all(10))
    }),
  )

  live(
    "or tells a lower finalized block in between takes nothing back",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(100, valued)
      chain.finalized = 50
      const node = yield* simulatedNode(chain)
      node.misbehave(tagsGoDown(20))
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: "finalized" })
      const { driven } = yield* drive(source)
      yield* until("block 50 is handed over", () => driven.upTo === 50)
      chain.finalized = 60
      yield* until("block 60 is handed over", () => driven.upTo === 60)
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(positions(driven.events), all(60))
    }),
  )
})
