import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Logger, Metric } from "effect"
import { endOf } from "../../../../core/model/cursor.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, secretsFrom, until } from "./driver.ts"

const services = Layer.mergeAll(outside, Layer.succeed(Secrets, secretsFrom({})), Logger.layer([]))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

/** Two nodes of one chain, the first one preferred, and a source of both. */
const twoNodes = Effect.fnUntraced(function* (blocks: number, config: Readonly<Record<string, unknown>> = {}) {
  const chain = new SimulatedChain().mine(blocks, valued)
  const [first, second] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
  const source = yield* makeSource({ ...quick, urls: [first.url, second.url], ...config })
  return { chain, first, second, source }
})

/** Mines a block now and then until the condition holds. */
const mineUntil = (what: string, chain: SimulatedChain, condition: () => boolean) =>
  Effect.raceFirst(
    until(what, condition),
    Effect.forever(Effect.andThen(Effect.sleep("15 millis"), () => Effect.sync(() => chain.mine(1, valued)))),
  )

/** A clock that can be put forward; sleeps take their real time. */
const movableClock = Effect.map(Clock.Clock, (clock) => {
  let ahead = 0
  const now = () => clock.currentTimeMillisUnsafe() + ahead
  return {
    clock: Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
    }),
    forward: (ms: number) => {
      ahead += ms
    },
  }
})

const valueOf = (name: string) =>
  Effect.map(Metric.snapshot, (metrics) =>
    metrics.filter(({ id }) => id === name).map(({ state }) => Number((state as { readonly value: number }).value)),
  )

describe("the head of several nodes", () => {
  live(
    "is asked of the preferred one, and of the others seldom",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(10)
      const { driven } = yield* drive(source)
      const polled = () => first.count("eth_getBlockByNumber")
      yield* mineUntil("a hundred polls were made", chain, () => polled() > 100)
      // A look is two calls: one when the run begins, and more where blocks come late on a busy machine.
      assert.isBelow(second.count("eth_getBlockByNumber"), polled() / 8)
      assert.strictEqual(second.count("eth_getLogs"), 0)
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "is not held by a node that stays 25 blocks behind; it is used again once it has caught up",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(100)
      first.lag = 25
      const { driven } = yield* drive(source)
      yield* until("it is followed as far as it is", () => driven.upTo >= 75)
      yield* mineUntil("the other is followed", chain, () => driven.upTo > chain.head.number - 10)
      const before = second.count("eth_getLogs")
      yield* mineUntil("the other serves", chain, () => second.count("eth_getLogs") > before + 20)
      first.lag = 0
      const served = first.count("eth_getLogs")
      yield* mineUntil("the first serves again", chain, () => first.count("eth_getLogs") > served + 5)
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(driven.troubles, [])
      assert.deepStrictEqual(positions(driven.events), all(driven.upTo))
    }),
  )

  live(
    "may jump 25 blocks back and forth between two nodes: that is no fork",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(100)
      second.lag = 25
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 100)
      for (let i = 1; i <= 2; i++) {
        const asked = second.count("eth_getBlockByNumber")
        first.fault = () => "drop"
        yield* until("the other is asked", () => second.count("eth_getBlockByNumber") > asked + 2)
        first.fault = () => undefined
        chain.mine(1, valued)
        yield* until("the first goes on", () => driven.upTo === 100 + i)
      }
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(positions(driven.events), all(102))
    }),
  )

  live(
    "that is far above the chain is not believed for long",
    Effect.gen(function* () {
      const { chain, first, source } = yield* twoNodes(100)
      const high = new SimulatedChain({ seed: "other" }).mine(1).head
      first.fault = (method, [tag]) =>
        method === "eth_getBlockByNumber" && tag === "latest"
          ? { result: { number: "0xf4240", hash: high.hash, parentHash: high.parentHash, timestamp: "0x1" } }
          : undefined
      const { driven } = yield* drive(source)
      yield* until("the blocks are read", () => driven.upTo === 100)
      yield* until("the head is the true one", () => driven.head?.primary === 100)
      yield* mineUntil("it goes on", chain, () => driven.upTo > 110)
      assert.deepStrictEqual(positions(driven.events), all(driven.upTo))
    }),
  )

  live(
    "that no node moves is told, measured, and over by itself",
    Effect.gen(function* () {
      const { clock, forward } = yield* movableClock
      const chain = new SimulatedChain().mine(10, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source).pipe(Effect.provideService(Clock.Clock, clock))
      for (let block = 11; block <= 14; block++) {
        chain.mine(1, valued)
        yield* until("the block is read", () => driven.upTo === block)
      }
      forward(59_000)
      yield* Effect.sleep("60 millis")
      assert.deepStrictEqual(driven.troubles, [])
      forward(2_000)
      yield* until("it is told", () => driven.trouble !== null)
      assert.match(
        driven.trouble!,
        /^no node has a new block since \d{4}-.*Z, while one usually comes every [\d.]+ s; the newest is 14, at 127/,
      )
      assert.isAtLeast(Math.max(...(yield* valueOf("blockwatcher_rpc_head_age_seconds"))), 60)
      chain.mine(1, valued)
      yield* until("it is over", () => driven.upTo === 15 && driven.trouble === null)
    }),
  )
})

describe("what one of several nodes asks for or lacks", () => {
  live(
    "Retry-After is kept also while no other node answers",
    Effect.gen(function* () {
      const { first, second, source } = yield* twoNodes(10)
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      const times: Array<number> = []
      first.fault = () => {
        times.push(performance.now())
        return times.length === 1
          ? { http: { status: 429, body: "slow down", headers: { "retry-after": "1.5" } } }
          : undefined
      }
      second.fault = () => "drop"
      yield* until("it is asked again", () => times.length > 1)
      assert.isAtLeast(times[1]! - times[0]!, 1400)
      assert.match(driven.troubles[0]!, /slow down|left alone/)
      yield* until("the trouble is over", () => driven.trouble === null)
    }),
  )

  live(
    "a tag that only the second knows is asked of the second, while the first serves logs",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(200, { confirmations: "finalized" })
      chain.finalized = 120
      first.tags = false
      const { driven } = yield* drive(source)
      yield* until("the finalized block is reached", () => driven.upTo === 120)
      assert.isAtLeast(first.count("eth_getLogs"), 1)
      chain.finalized = 130
      yield* until("it is followed", () => driven.upTo === 130)
      chain.finalized = 110
      second.fault = () => "drop"
      chain.mine(100, valued)
      yield* until("the trouble is told", () => driven.trouble !== null)
      yield* until("it is that of the tag", () =>
        /does not tell the finalized block any more/.test(driven.trouble ?? ""),
      )
      assert.strictEqual(driven.upTo, 130)
      second.fault = () => undefined
      chain.finalized = 290
      yield* until("it is followed again", () => driven.upTo === 290 && driven.trouble === null)
      assert.deepStrictEqual(positions(driven.events), all(290))
    }),
  )
})

describe("a fork that one of several nodes tells of again and again", () => {
  live(
    "and takes back each time is asked of another node",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(30)
      const other = new SimulatedChain({ seed: "other" }).mine(30)
      second.lag = 1 // what it says about the newest block proves nothing
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      // each poll and the comparison after it show the fork, the second comparison does not
      let asked = 0
      let isLie = false
      first.fault = (method, [tag]) => {
        if (method !== "eth_getBlockByNumber") return undefined
        if (tag === "latest") isLie = asked++ % 3 < 2
        const { number, hash, parentHash } = tag === "latest" ? other.head : (other.at(Number(tag)) ?? other.head)
        return isLie
          ? { result: { number: `0x${number.toString(16)}`, hash, parentHash, timestamp: "0x1" } }
          : undefined
      }
      yield* until("the first told of it twice", () => asked >= 6)
      const served = second.count("eth_getBlockByNumber")
      yield* until("the other is polled", () => second.count("eth_getBlockByNumber") > served + 10)
      assert.strictEqual(asked, 6)
      second.lag = 0
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo === 31)
      assert.strictEqual(driven.exit, undefined)
    }),
  )

  live(
    "so that nothing of a run would stay, is asked of another node",
    Effect.gen(function* () {
      const { chain, first, second, source } = yield* twoNodes(30)
      second.lag = 10
      const { driven } = yield* drive(source, {
        cursor: endOf(27),
        anchors: [{ primary: 27, hash: chain.at(27)!.hash }],
      })
      yield* until("the head is reached", () => driven.upTo === 30)
      const before = chain.fork()
      second.chain = before
      chain.reorg(3, { length: 4 })
      yield* until("the other is polled", () => second.count("eth_getBlockByNumber") > 20)
      first.fault = () => "drop"
      second.lag = 0
      yield* Effect.sleep("100 millis")
      assert.strictEqual(driven.exit, undefined)
      second.chain = chain
      yield* until("the fork that both have is believed", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(27))
    }),
  )
})
