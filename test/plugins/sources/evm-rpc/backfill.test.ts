import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, scan, secretsFrom, until, watching } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const LATENCY_MS = 200

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

const isRange = (method: string, [filter]: ReadonlyArray<any>): boolean =>
  method === "eth_getLogs" && filter.fromBlock !== undefined

/** Keeps the times of calls; the most of them that were certainly under way at the same time. */
const watchCalls = (node: SimulatedNode, counts: (method: string, params: ReadonlyArray<any>) => boolean) => {
  const times: Array<number> = []
  node.latencyMs = LATENCY_MS
  node.fault = (method, params) => {
    if (counts(method, params)) times.push(performance.now())
    return undefined
  }
  return {
    get most(): number {
      return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + LATENCY_MS).length))
    },
  }
}

describe("ranges far from the head", () => {
  live(
    "are asked for many at a time where a node answers late, and handed over in order",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1000, valued)
      const node = yield* simulatedNode(chain)
      const calls = watchCalls(node, isRange)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 20 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 1000)
      assert.deepStrictEqual(positions(driven.events), all(1000))
      assert.isAtLeast(calls.most, 8)
      assert.isAtMost(calls.most, 17)
    }),
  )

  live(
    "are read many at a time also where whole blocks are needed, and in a scan",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(700, [], [{ to: addressOf(1) }, { to: addressOf(2) }])
      const node = yield* simulatedNode(chain)
      const calls = watchCalls(
        node,
        (method, [number]) => method === "eth_getBlockByNumber" && Number(number) % 8 === 0,
      )
      node.latencyMs = 50
      const source = yield* makeSource({ ...quick, url: node.url })
      const batches = yield* scan(source, 0, 600, watching({ kind: "transaction" }))
      assert.deepStrictEqual(
        batches.flatMap(({ events }) => events).map(({ cursor }) => cursor.primary),
        Array.from({ length: 1200 }, (_, i) => 1 + (i >> 1)),
      )
      assert.isAtLeast(calls.most, 6)
    }),
  )

  live(
    "are shared by the providers that are well; one that lacks the blocks, or goes away, holds nothing up",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1200, valued)
      const nodes = [yield* simulatedNode(chain), yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const [one, other, behind] = nodes as [SimulatedNode, SimulatedNode, SimulatedNode]
      for (const node of nodes) node.latencyMs = 10
      behind.lag = 1190
      const source = yield* makeSource({ ...quick, urls: nodes.map(({ url }) => url), max_block_range: 10 })
      const { driven } = yield* drive(source)
      yield* until("half is read", () => driven.upTo > 600)
      assert.isAtLeast(Math.min(one.count("eth_getLogs"), other.count("eth_getLogs")), 10)
      assert.isAtMost(behind.count("eth_getLogs"), 10)
      one.fault = () => "drop"
      yield* until("the head is reached", () => driven.upTo === 1200)
      assert.deepStrictEqual(positions(driven.events), all(1200))
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "are asked for less at a time where a node refuses so many requests, which does not shrink them",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(1000, valued)
      const [node, other] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const times: Array<number> = []
      const spans = new Set<number>()
      let refusals = 0
      node.latencyMs = 20
      other.latencyMs = 20
      node.fault = (method, params) => {
        if (!isRange(method, params)) return undefined
        const now = performance.now()
        spans.add(Number(params[0].toBlock) - Number(params[0].fromBlock) + 1)
        times.push(now)
        if (times.filter((at) => at > now - 20).length <= 4) return undefined
        refusals++
        return { http: { status: 429, body: "too many requests" } }
      }
      const source = yield* makeSource({ ...quick, urls: [node.url, other.url], max_block_range: 20 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 1000)
      assert.deepStrictEqual(positions(driven.events), all(1000))
      assert.isAtMost(refusals, 30)
      assert.isTrue([...spans].every((span) => span === 20 || span === 937 % 20))
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "that were read already are not asked for again after one before them failed",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(500, valued)
      const node = yield* simulatedNode(chain)
      node.latencyMs = 5
      let left = 3
      node.fault = (method, params) =>
        isRange(method, params) && Number(params[0].fromBlock) === 200 && left-- > 0 ? { result: null } : undefined
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 20 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 500)
      assert.deepStrictEqual(positions(driven.events), all(500))
      assert.match(driven.troubles[0]!, /the logs should be a list/)
      assert.isAtMost(node.count("eth_getLogs"), 22 + 64 + 8)
    }),
  )

  live(
    "are fewer at a time where their answers are large, and those larger than what came before wait for their turn",
    Effect.gen(function* () {
      const data = (length: number) => `0x${"0".repeat(length)}`
      const chain = new SimulatedChain().mine(400, (number) => [
        { ...transfer(1, 2, 3, number), data: data(number > 300 ? 160_000 : 80_000) },
      ])
      const node = yield* simulatedNode(chain)
      const calls = watchCalls(node, isRange)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 30 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 400)
      assert.deepStrictEqual(positions(driven.events), all(400))
      assert.isAtMost(calls.most, 4)
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )
})
