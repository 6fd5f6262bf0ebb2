import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { otherChain, pruned } from "../../../../server/devnet/simulated/faults/chain.ts"
import { drops } from "../../../../server/devnet/simulated/faults/transport.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

describe("a provider that was left out", () => {
  live(
    "because it served another chain is used again when it serves the right one",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [astray, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const heal = astray.misbehave(otherChain(new SimulatedChain({ chainId: 7 }).mine(10)))
      const source = yield* makeSource({ ...quick, urls: [astray.url, good.url] })
      yield* source.start
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      assert.strictEqual(astray.count("eth_getLogs"), 0)
      heal()
      good.misbehave(drops())
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo === 11)
      assert.deepStrictEqual(positions(driven.events), all(11))
    }),
  )

  live(
    "because it lacked old blocks is still asked when nobody else answers",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [young, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const heal = young.misbehave(pruned(1000, "an error"))
      const source = yield* makeSource({ ...quick, urls: [young.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      heal()
      good.misbehave(drops())
      chain.mine(3, valued)
      yield* until("the next blocks are read", () => driven.upTo === 13)
      assert.deepStrictEqual(positions(driven.events), all(13))
    }),
  )
})
