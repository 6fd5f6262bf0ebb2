import { connect } from "node:net"
import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call as askNode } from "./call.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import type { ChainView } from "../../../../server/devnet/simulated/view.ts"

/** One transfer a block, whose value is the block's number, or so much more. */
const valued =
  (more = 0) =>
  (number: number) => [transfer(1, 2, 3, number + more)]

const hashesOf = (view: ChainView): ReadonlyArray<string> =>
  Array.from({ length: view.head.number + 1 }, (_, number) => view.at(number)!.hash)

const valuesOf = (view: ChainView, from = 0): ReadonlyArray<number> =>
  view.canonicalLogs(from).map(({ log }) => Number(log.data))

const call = async (url: string, method: string, params: ReadonlyArray<unknown> = []): Promise<any> =>
  (await askNode(url, method, params)).result

describe("a simulated chain", () => {
  it("has the same hashes after the same script", () => {
    const play = () => {
      const chain = new SimulatedChain().mine(10, valued())
      const a = chain.fork()
      chain.reorg(3, { length: 4, logs: "same" })
      chain.switchTo(a).mine(2, valued())
      return hashesOf(chain)
    }
    assert.deepStrictEqual(play(), play())
  })

  it("replaces the newest blocks by others, with the same logs or with other ones", () => {
    const chain = new SimulatedChain().mine(10, valued())
    const before = hashesOf(chain)
    const gone = chain.reorg(3, { length: 4, logs: "same" })
    assert.deepStrictEqual(
      gone.map(({ hash }) => hash),
      before.slice(8),
    )
    assert.deepStrictEqual(hashesOf(chain).slice(0, 8), before.slice(0, 8))
    assert.isFalse(hashesOf(chain).some((hash, number) => number > 7 && before.includes(hash)))
    assert.deepStrictEqual(valuesOf(chain, 7), [7, 8, 9, 10])
    chain.reorg(2, { logs: valued(100) })
    assert.deepStrictEqual(valuesOf(chain, 7), [7, 8, 9, 110, 111])
  })

  it("flips between two forks and back, with the same blocks each time", () => {
    const chain = new SimulatedChain().mine(10, valued())
    const a = chain.fork()
    chain.reorg(3, { length: 5, logs: valued(100) })
    const b = chain.fork()
    const hashes = [hashesOf(a), hashesOf(b)]
    for (const [fork, expected] of [a, b, a, b].map((fork, i) => [fork, hashes[i % 2]!] as const)) {
      chain.switchTo(fork)
      assert.deepStrictEqual(hashesOf(chain), expected)
      assert.deepStrictEqual(chain.canonicalLogs(), fork.canonicalLogs())
    }
    chain.mine(1, valued())
    assert.deepStrictEqual([hashesOf(a), hashesOf(b)], hashes)
  })

  it("mines new blocks on a fork that it returns to", () => {
    const chain = new SimulatedChain().mine(3)
    const a = chain.fork()
    const first = chain.mine(1).head
    const second = chain.switchTo(a).mine(1).head
    assert.strictEqual(second.number, first.number)
    assert.notStrictEqual(second.hash, first.hash)
  })

  it("tells its canonical logs with their places, and whether two blocks can both be canonical", () => {
    const chain = new SimulatedChain().mine(2, [transfer(1, 2, 3, 4), transfer(1, 2, 3, 5)])
    assert.deepStrictEqual(
      chain.canonicalLogs(2).map(({ block, hash, index, log }) => [block, hash, index, log.address]),
      [0, 1].map((index) => [2, chain.at(2)!.hash, index, addressOf(1)]),
    )
    assert.strictEqual(chain.canonicalLogs(1, 1).length, 2)
    const [gone] = chain.reorg(1, { length: 2 })
    const [ancestor, one, two] = [1, 2, 3].map((number) => chain.at(number)!.hash)
    assert.isTrue(chain.areOnOneFork(ancestor!, gone!.hash))
    assert.isTrue(chain.areOnOneFork(two!, ancestor!))
    assert.isFalse(chain.areOnOneFork(gone!.hash, one!))
    assert.isFalse(chain.areOnOneFork(gone!.hash, two!))
    assert.isFalse(chain.areOnOneFork(gone!.hash, "0x"))
  })
})

describe("a simulated node", () => {
  it.live("serves an older fork for a while, or stays some blocks behind", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10)
      const node = yield* simulatedNode(chain)
      const head = Effect.promise(() => call(node.url, "eth_getBlockByNumber", ["latest", false]))
      node.chain = chain.fork()
      const { hash } = chain.head
      chain.reorg(2, { length: 3 })
      assert.strictEqual((yield* head).hash, hash)
      assert.isNull(yield* Effect.promise(() => call(node.url, "eth_getBlockByHash", [chain.head.hash, false])))
      node.chain = chain
      assert.strictEqual((yield* head).hash, chain.head.hash)
      node.lag = 4
      assert.strictEqual((yield* head).number, "0x7")
    }),
  )

  it.live("tells the finalized and the safe block that it was given", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10)
      const node = yield* simulatedNode(chain)
      const numberOf = (tag: string) =>
        Effect.promise(async () => (await call(node.url, "eth_getBlockByNumber", [tag, false]))?.number)
      assert.isUndefined(yield* numberOf("finalized"))
      chain.finalized = 3
      chain.safe = 5
      assert.deepStrictEqual([yield* numberOf("finalized"), yield* numberOf("safe")], ["0x3", "0x5"])
      node.chain = chain.fork()
      chain.finalized = 4
      assert.strictEqual(yield* numberOf("finalized"), "0x3")
    }),
  )

  it.live("answers nothing while it pauses, and what waited when it goes on", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10)
      const node = yield* simulatedNode(chain)
      node.pause()
      let answered = false
      const waiting = call(node.url, "eth_blockNumber").then((number) => {
        answered = true
        return number
      })
      const error = yield* Effect.promise(() =>
        fetch(node.url, { method: "POST", body: "[]", signal: AbortSignal.timeout(100) }).catch(({ name }) => name),
      )
      assert.strictEqual(error, "TimeoutError")
      assert.isFalse(answered)
      chain.mine(1)
      node.resume()
      assert.strictEqual(yield* Effect.promise(() => waiting), "0xb")
      assert.strictEqual(yield* Effect.promise(() => call(node.url, "eth_blockNumber")), "0xb")
    }),
  )

  it.live("lives on when a client goes away in the middle of a request", () =>
    Effect.gen(function* () {
      const node = yield* simulatedNode(new SimulatedChain().mine(1))
      const socket = connect(node.port, "127.0.0.1")
      yield* Effect.promise(async () => {
        await once(socket, "connect")
        socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf a request")
        // The node has read as far when it has answered this.
        await call(node.url, "eth_chainId")
        socket.resetAndDestroy()
        await once(socket, "close")
        assert.strictEqual(await call(node.url, "eth_blockNumber"), "0x1")
      })
    }),
  )
})
