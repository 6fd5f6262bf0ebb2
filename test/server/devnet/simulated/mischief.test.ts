import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FAULT_KINDS } from "../../../../server/devnet/simulated/catalog.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { omitsLogs, zeroBlooms } from "../../../../server/devnet/simulated/faults/logs.ts"
import {
  headJumps,
  inventedHead,
  ownFork,
  standsStill,
  staysBehind,
} from "../../../../server/devnet/simulated/faults/chain.ts"
import { leadingZeros } from "../../../../server/devnet/simulated/faults/shapes.ts"
import { LIMIT_MESSAGES, rangeLimit } from "../../../../server/devnet/simulated/faults/limits.ts"
import { Mischief } from "../../../../server/devnet/simulated/mischief.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { Random } from "../../../../server/devnet/simulated/random.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { classify } from "../../../../plugins/sources/evm-rpc/rpc/errors.ts"
import { call } from "./call.ts"

const valued = (number: number) => [transfer(1, 2, 3, number)]

describe("the faults of simulated nodes", () => {
  it("have names of their own, and say what they do", () => {
    const made = FAULT_KINDS.map(({ make }) => make(new Random(1, "x")))
    assert.isAbove(new Set(made.map(({ name }) => name)).size, 50)
    for (const { says } of made) assert.match(says, /^[a-z]/)
  })

  it.live("come together, and are gone without a trace", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(40, valued)
      const node = yield* simulatedNode(chain)
      const logs = () =>
        Effect.promise(() => call(node.url, "eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x28" }])).pipe(
          Effect.map(({ result }) => result as ReadonlyArray<any>),
        )
      const head = () =>
        Effect.promise(async () => (await call(node.url, "eth_getBlockByNumber", ["latest", false])).result)
      node.misbehave(staysBehind(5), headJumps(4), zeroBlooms(), leadingZeros(), omitsLogs(1))
      // 35 is the head, and every fourth block comes as one.
      assert.deepInclude(yield* head(), { number: "0x00020", logsBloom: `0x${"0".repeat(512)}` })
      const some = yield* logs()
      assert.isTrue(some.length > 4 && some.length < 30)
      assert.deepStrictEqual(yield* logs(), some)
      node.faults.clear()
      assert.strictEqual((yield* head()).number, "0x28")
      assert.strictEqual((yield* logs()).length, 40)
    }),
  )

  it.live("show a chain that stands still, a fork that goes on with the chain, and a head that is not there", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const node = yield* simulatedNode(chain)
      const block = (tag: string) =>
        Effect.promise(async () => (await call(node.url, "eth_getBlockByNumber", [tag, false])).result)
      const still = standsStill()
      node.misbehave(still)
      yield* block("latest")
      chain.mine(3)
      assert.strictEqual((yield* block("latest")).hash, chain.at(10)!.hash)
      node.faults.delete(still)
      const fork = ownFork(1, 2)
      node.misbehave(fork)
      const [twelve, thirteen] = [yield* block("0xc"), yield* block("0xd")]
      assert.strictEqual(twelve.parentHash, chain.at(11)!.hash)
      assert.notStrictEqual(twelve.hash, chain.at(12)!.hash)
      assert.strictEqual(thirteen.parentHash, twelve.hash)
      chain.mine(1)
      assert.strictEqual((yield* block("latest")).parentHash, thirteen.hash)
      node.faults.delete(fork)
      node.misbehave(inventedHead(100))
      assert.strictEqual((yield* block("latest")).number, "0x72")
      assert.isNull(yield* block("0x72"))
    }),
  )

  it.live("refuse ranges in the words of providers, and serve what they allow", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(40, valued)
      const node = yield* simulatedNode(chain)
      for (const message of LIMIT_MESSAGES) {
        node.faults.clear()
        node.misbehave(rangeLimit(10, message))
        const ask = (to: string) =>
          Effect.promise(() => call(node.url, "eth_getLogs", [{ fromBlock: "0x1", toBlock: to }]))
        const { error } = yield* ask("0xb")
        const { kind } = classify({ status: 200, ...error })
        assert.strictEqual(kind, message.kind === "structural" ? "range" : "too-many", error.message)
        assert.strictEqual((yield* ask("0xa")).result.length, 10)
      }
    }),
  )
})

describe("a plan of faults", () => {
  it.live("is decided by its seed, keeps to its bounds, and heals", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain()
      const nodes = yield* Effect.all([simulatedNode(chain), simulatedNode(chain), simulatedNode(chain)])
      const play = (seed: number) => {
        const mischief = new Mischief(nodes, {
          random: new Random(seed, "faults"),
          kinds: FAULT_KINDS,
          most: 2,
          lasts: [2, 10],
        })
        const changes: Array<string> = []
        for (let i = 0; i < 200; i++) {
          for (const { node, fault, began } of mischief.step())
            changes.push(`${i} ${nodes.indexOf(node)} ${fault.name} ${began}`)
          const { active } = mischief
          assert.isAtMost(active.length, 2)
          assert.strictEqual(new Set(active.map(({ node }) => node)).size, active.length)
          assert.strictEqual(new Set(active.map(({ fault }) => fault.says)).size, active.length)
          for (const node of nodes)
            assert.deepStrictEqual(
              [...node.faults],
              active.filter((one) => one.node === node).map(({ fault }) => fault),
            )
        }
        mischief.heal()
        assert.isTrue(nodes.every(({ faults }) => faults.size === 0))
        return changes
      }
      const changes = play(1)
      assert.isAbove(changes.length, 60)
      assert.deepStrictEqual(play(1), changes)
      assert.notDeepEqual(play(2), changes)
    }),
  )
})
