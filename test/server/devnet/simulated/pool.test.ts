import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf } from "../../../../server/devnet/simulated/transfer.ts"
import { call } from "./call.ts"

const payment = (value: number) => ({ from: addressOf(1), to: addressOf(2), value })

describe("the pool of a simulated chain", () => {
  it("gives nonces in their order, and lets one take another's place", () => {
    const { pool } = new SimulatedChain()
    const [first, second] = [pool.add(payment(1)), pool.add(payment(2))]
    assert.deepStrictEqual([first.nonce, second.nonce], [0, 1])
    const faster = pool.add({ ...payment(2), nonce: 1, input: "0x00" })
    assert.deepStrictEqual(pool.pending, [first, faster])
    assert.isTrue(pool.drop(first.hash))
    assert.isFalse(pool.drop(first.hash))
    assert.strictEqual(pool.add(payment(3)).nonce, 2)
  })

  it("is mined under the same hash, and takes back what a fork leaves out", () => {
    const chain = new SimulatedChain()
    const [one, two] = [chain.pool.add(payment(1)), chain.pool.add(payment(2))]
    chain.mine(1, [], chain.pool.take())
    assert.deepStrictEqual(chain.pool.pending, [])
    const [gone] = chain.reorg(1, { transactions: [two] })
    assert.deepStrictEqual(chain.pool.pending, [one])
    assert.deepStrictEqual(
      chain.head.transactions.map(({ hash }) => hash),
      [two.hash],
    )
    chain.restore([gone!])
    assert.deepStrictEqual(chain.pool.pending, [])
  })

  it.live("shows at every node of the chain: by hash, by filter and whole", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain()
      const [node, other] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const ask = (method: string, ...params: ReadonlyArray<unknown>) =>
        Effect.promise(() => call(node.url, method, params))
      const filter = (yield* ask("eth_newPendingTransactionFilter")).result
      const { hash } = chain.pool.add(payment(1))
      assert.deepStrictEqual((yield* ask("eth_getFilterChanges", filter)).result, [hash])
      assert.deepStrictEqual((yield* ask("eth_getFilterChanges", filter)).result, [])
      const pending = (yield* Effect.promise(() => call(other.url, "txpool_content"))).result.pending
      assert.strictEqual(pending[addressOf(1)][0].hash, hash)
      assert.isNull((yield* ask("eth_getTransactionByHash", hash)).result.blockNumber)
      chain.mine(1, [], chain.pool.take())
      assert.strictEqual((yield* ask("eth_getTransactionByHash", hash)).result.blockNumber, "0x1")
      assert.strictEqual((yield* ask("eth_getTransactionReceipt", hash)).result.status, "0x1")
      assert.isTrue((yield* ask("eth_uninstallFilter", filter)).result)
      assert.strictEqual((yield* ask("eth_getFilterChanges", filter)).error.message, "filter not found")
    }),
  )

  it("forgets the oldest blocks where it shall, and goes on", () => {
    const chain = new SimulatedChain({ keep: 10 }).mine(30)
    assert.isUndefined(chain.at(20))
    assert.strictEqual(chain.at(21)?.number, 21)
    chain.reorg(2, { length: 3 })
    assert.strictEqual(chain.head.number, 31)
  })
})
