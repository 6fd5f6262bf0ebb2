import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { startOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { inventedHead, pruned } from "../../../../server/devnet/simulated/faults/chain.ts"
import { rawBlock } from "../../../../server/devnet/simulated/methods.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

describe("a head that nobody has", () => {
  for (const ahead of [1, 50, 1000])
    live(
      `${ahead} above the chain's is left to who claims it: the other provider is followed`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(20, valued)
        const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
        const source = yield* makeSource({ ...quick, urls: [liar.url, good.url] })
        const { driven } = yield* drive(source)
        yield* until("the head is reached", () => driven.upTo === 20)
        liar.misbehave(inventedHead(ahead))
        for (let i = 0; i < 5; i++) {
          chain.mine(1, valued)
          yield* until("the next block is read", () => driven.upTo === chain.head.number)
        }
        assert.deepStrictEqual(positions(driven.events), all(25))
        assert.strictEqual(driven.exit, undefined)
      }),
    )

  live(
    "but is shown whenever it is asked for is not waited for: the blocks below it are not to be had",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, valued)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const source = yield* makeSource({ ...quick, urls: [liar.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 20)
      const invented = rawBlock(new SimulatedChain({ seed: "invented" }).mine(60).head, false)
      liar.fault = (method, [tag]) =>
        method === "eth_getBlockByNumber" && (tag === "latest" || Number(tag) === 60) ? { result: invented } : undefined
      for (let i = 0; i < 3; i++) {
        chain.mine(1, valued)
        yield* until("the next block is read", () => driven.upTo === chain.head.number)
      }
      assert.deepStrictEqual(positions(driven.events), all(23))
    }),
  )

  live(
    "does not bring blocks closer than the confirmations",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, valued)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      liar.misbehave(inventedHead(1000))
      const source = yield* makeSource({ ...quick, urls: [liar.url, good.url], confirmations: 10, max_block_range: 7 })
      const { driven } = yield* drive(source)
      yield* until("what is deep enough is read", () => driven.upTo >= 290)
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo >= 291)
      assert.strictEqual(driven.upTo, 291)
      assert.deepStrictEqual(positions(driven.events), all(291))
    }),
  )

  live(
    "is no start",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20)
      const [liar, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      liar.misbehave(inventedHead(1000))
      const source = yield* makeSource({ ...quick, urls: [liar.url, good.url], start: "latest" })
      assert.deepStrictEqual(yield* source.start, startOf(20))
      const lonely = yield* makeSource({ ...quick, url: liar.url, start: "latest" })
      const { message } = (yield* Effect.flip(lonely.start)) as Error
      assert.match(message, /says that its newest block is 1020/)
    }),
  )

  live(
    "is told as trouble where there is no other provider, and over when it is",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, valued)
      const liar = yield* simulatedNode(chain)
      const heal = liar.misbehave(inventedHead(1000))
      const source = yield* makeSource({ ...quick, url: liar.url, confirmations: 5 })
      const { driven } = yield* drive(source)
      yield* until("the trouble is told", () => driven.trouble !== null)
      assert.match(driven.trouble!, /says that its newest block is 1020 .*, and does not have it/)
      heal()
      yield* until("what is deep enough is read", () => driven.upTo === 15)
      yield* until("the trouble is over", () => driven.trouble === null)
    }),
  )
})

describe("a provider that lacks the blocks that were handed over", () => {
  live(
    "has no opinion about a fork: another one is asked",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const [young, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const source = yield* makeSource({ ...quick, urls: [young.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      young.misbehave(pruned(1_000_000, "an error"))
      chain.reorg(2, { length: 3 })
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.strictEqual((driven.outcome as any).from.primary, 28)
    }),
  )
})
