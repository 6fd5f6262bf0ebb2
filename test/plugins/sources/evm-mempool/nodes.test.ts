import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { networkNow } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { type Fault, type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { Told, watchMempool } from "./support.ts"

const hashOf = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`

const pending = (n: number) => ({
  hash: hashOf(n),
  from: "0x00000000000000000000000000000000000000aa",
  to: "0x00000000000000000000000000000000000000bb",
  value: "0x0",
  input: "0x",
  nonce: `0x${n.toString(16)}`,
})

const unsupported: Fault = { error: { code: -32601, message: "the method does not exist" } }

/** The pool of a node; tests say what the node offers of it. */
class Pool {
  readonly transactions: Array<number> = []
  /** Transactions that the node told of and cannot show yet. */
  readonly hidden = new Set<number>()
  offersFilter = true
  offersPool = true
  /** Whether the changes of a filter are whole transactions. */
  tellsAll = false
  #told = 0
  #filter: string | null = null
  #filters = 0

  add(...transactions: ReadonlyArray<number>): void {
    this.transactions.push(...transactions)
  }

  forgetFilter(): void {
    this.#filter = null
  }

  answer(method: string, params: ReadonlyArray<any>): Fault | undefined {
    switch (method) {
      case "eth_newPendingTransactionFilter":
        if (!this.offersFilter) return unsupported
        this.#filter = `0x${(++this.#filters).toString(16)}`
        this.#told = this.transactions.length
        return { result: this.#filter }
      case "eth_getFilterChanges": {
        if (params[0] !== this.#filter) return { error: { code: -32000, message: "filter not found" } }
        const news = this.transactions.slice(this.#told)
        this.#told = this.transactions.length
        return { result: news.map((n) => (this.tellsAll ? pending(n) : hashOf(n))) }
      }
      case "eth_getTransactionByHash": {
        const n = this.transactions.find((one) => hashOf(one) === params[0])
        return { result: n === undefined || this.hidden.has(n) ? null : pending(n) }
      }
      case "txpool_content": {
        if (!this.offersPool) return unsupported
        const ofSender = Object.fromEntries(this.transactions.map((n) => [n, pending(n)]))
        return { result: { pending: { "0x00000000000000000000000000000000000000aa": ofSender }, queued: {} } }
      }
      default:
        return undefined
    }
  }
}

const nodeWith = Effect.fnUntraced(function* (pool: Pool) {
  const node = yield* simulatedNode(new SimulatedChain())
  node.fault = (method, params) => pool.answer(method, params)
  return node
})

const watch = (nodes: ReadonlyArray<SimulatedNode>, told: Told, path?: string) =>
  watchMempool({
    urls: nodes.map(({ url }) => url),
    chainId: 1,
    selectors: { all: { kind: "transaction" } },
    told,
    ...(path === undefined ? {} : { path }),
  })

const asked = (node: SimulatedNode, method: string) => waitUntil(`${method} is asked for`, () => node.count(method) > 0)

describe("evm-mempool", () => {
  it.live("asks a filter for news, makes another when the node forgot it, and is told each transaction once", () =>
    Effect.gen(function* () {
      const pool = new Pool()
      const node = yield* nodeWith(pool)
      const told = new Told()
      yield* watch([node], told)
      yield* asked(node, "eth_getFilterChanges")
      pool.hidden.add(2)
      pool.add(1, 2)
      yield* waitUntil("the first is told", () => told.events.length === 1)
      pool.hidden.clear()
      yield* waitUntil("the other is told, once the node can show it", () => told.events.length === 2)
      pool.forgetFilter()
      const filters = node.count("eth_newPendingTransactionFilter")
      yield* waitUntil("another filter is made", () => node.count("eth_newPendingTransactionFilter") > filters)
      pool.tellsAll = true
      pool.add(1, 3)
      yield* waitUntil("the third is told", () => told.events.length === 3)
      assert.deepStrictEqual(told.hashes, [1, 2, 3].map(hashOf))
    }),
  )

  it.live("looks through the pool of a node without filters", () =>
    Effect.gen(function* () {
      const pool = new Pool()
      pool.offersFilter = false
      pool.add(1, 2)
      const node = yield* nodeWith(pool)
      const told = new Told()
      yield* watch([node], told)
      yield* waitUntil("the pool is told", () => told.events.length === 2)
      pool.add(3)
      yield* waitUntil("what came is told", () => told.events.length === 3)
      assert.deepStrictEqual(told.hashes, [1, 2, 3].map(hashOf))
    }),
  )

  it.live("says what is wrong with nodes that do not tell what is pending, and goes on with one that does", () =>
    Effect.gen(function* () {
      const mute = new Pool()
      mute.offersFilter = mute.offersPool = false
      const node = yield* nodeWith(mute)
      const told = new Told()
      const runtime = yield* watch([node], told)
      yield* waitUntil(
        "the network says why",
        Effect.map(
          networkNow(runtime, "pool"),
          ({ error }) => error?.includes("offers neither eth_newPendingTransactionFilter nor txpool_content") === true,
        ),
      )
      mute.offersPool = true
      mute.add(1)
      yield* waitUntil("it is told", () => told.events.length === 1)
      yield* waitUntil(
        "nothing is wrong",
        Effect.map(networkNow(runtime, "pool"), ({ error }) => error === null),
      )
    }),
  )

  it.live("goes over to another node when one fails, and tells nothing twice that both have", () =>
    Effect.gen(function* () {
      const pool = new Pool()
      const [first, second] = [yield* nodeWith(pool), yield* nodeWith(pool)]
      pool.offersFilter = false
      pool.add(1)
      const told = new Told()
      yield* watch([first, second], told)
      yield* waitUntil("the first is told", () => told.events.length === 1)
      first.fault = () => "drop"
      pool.add(2)
      yield* waitUntil("the second is told", () => told.events.length === 2)
      assert.deepStrictEqual(told.hashes, [1, 2].map(hashOf))
    }),
  )

  it.live("counts on after a restart: the same transaction seen again is another match", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "mempool-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true })),
      )
      const pool = new Pool()
      pool.offersFilter = false
      pool.add(1)
      const node = yield* nodeWith(pool)
      const told = new Told()
      for (const count of [1, 2]) {
        const scope = yield* Scope.make()
        yield* watch([node], told, join(folder, "db")).pipe(Scope.provide(scope))
        yield* waitUntil(`it is told: ${count}`, () => told.events.length === count)
        yield* Scope.close(scope, Exit.void)
      }
      assert.deepStrictEqual(told.hashes, [1, 1].map(hashOf))
      assert.strictEqual(new Set(told.ids).size, 2)
    }),
  )
})
