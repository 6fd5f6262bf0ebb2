import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { endOf, startOf } from "../../../../core/model/cursor.ts"
import { SourceUnavailable } from "../../../../core/plugin/error.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { Anchor } from "../../../../core/plugin/source.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, scan, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]

/** Long enough for several polls. */
const someTime = Effect.sleep("200 millis")

describe("a fork that cuts into what was handed over", () => {
  for (const depth of [1, 2, 5, 40])
    live(
      `of depth ${depth} ends the run at the block before it`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(100, valued)
        const node = yield* simulatedNode(chain)
        const source = yield* makeSource({ ...quick, url: node.url })
        const { driven } = yield* drive(source)
        yield* until("the head is reached", () => driven.upTo === 100)
        chain.reorg(depth, { length: depth + 1 })
        yield* until("the run ends", () => driven.exit !== undefined)
        assert.strictEqual(driven.outcome?._tag, "Invalidated")
        assert.deepStrictEqual((driven.outcome as any).from, endOf(100 - depth))
        assert.match((driven.outcome as any).cause, /reorganisation: block \d+ was 0x[0-9a-f]{64} and is now 0x/)
      }),
    )

  live(
    "of the same length, or shorter, is found as well",
    Effect.gen(function* () {
      for (const length of [3, 1]) {
        const chain = new SimulatedChain().mine(30, valued)
        const node = yield* simulatedNode(chain)
        const source = yield* makeSource({ ...quick, url: node.url })
        const { driven } = yield* drive(source)
        yield* until("the head is reached", () => driven.upTo === 30)
        chain.reorg(3, { length })
        yield* until("the run ends", () => driven.exit !== undefined)
        assert.deepStrictEqual((driven.outcome as any).from, endOf(27))
      }
    }),
  )

  live(
    "is found also when the chain went far ahead before anyone could look",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(100, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 100)
      node.pause()
      chain.reorg(4)
      chain.mine(200, valued)
      node.resume()
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(96))
      assert.strictEqual(driven.upTo, 100)
    }),
  )

  live(
    "deeper than the confirmations is found, also when the head does not rise",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: 4 })
      const { driven } = yield* drive(source)
      yield* until("block 26 is reached", () => driven.upTo === 26)
      chain.reorg(6)
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(24))
    }),
  )

  live(
    "is followed to its end: a restart from the fork hands over the new blocks only",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const first = yield* drive(source)
      yield* until("the head is reached", () => first.driven.upTo === 20)
      chain.reorg(2, { length: 3, logs: (number) => valued(1000 + number) })
      yield* until("the run ends", () => first.driven.exit !== undefined)
      const from = (first.driven.outcome as any).from
      const anchors = first.driven.anchors.filter(({ primary }) => primary <= from.primary)
      const second = yield* drive(source, { cursor: from, anchors })
      yield* until("the new head is reached", () => second.driven.upTo === 21)
      assert.deepStrictEqual(positions(second.driven.events), ["19:0", "20:0", "21:0"])
      assert.deepStrictEqual(
        second.driven.events.map((event) => (event.fields()["args"] as any).value),
        [1019n, 1020n, 1021n],
      )
    }),
  )
})

describe("another chain in place of all that was handed over", () => {
  live(
    "is taken back from below the oldest block that is known, at most from below the first",
    Effect.gen(function* () {
      for (const [oldest, before] of [
        [0, -1],
        [20, 19],
      ] as const) {
        const node = yield* simulatedNode(new SimulatedChain().mine(30, valued))
        const source = yield* makeSource({ ...quick, url: node.url })
        const { driven } = yield* drive(source, { cursor: startOf(oldest) })
        yield* until("the head is reached", () => driven.upTo === 30)
        node.chain = new SimulatedChain({ seed: "other" }).mine(31, valued)
        yield* until("the run ends", () => driven.exit !== undefined)
        const { from, cause } = driven.outcome as any
        assert.deepStrictEqual(from, endOf(before))
        assert.match(cause, new RegExp(`none of the recorded blocks down to ${oldest} is on the chain any more`))
      }
    }),
  )
})

describe("what is no fork of what was handed over", () => {
  live(
    "a reorganisation above the confirmations stays inside",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, confirmations: 4 })
      const { driven } = yield* drive(source)
      yield* until("block 26 is reached", () => driven.upTo === 26)
      chain.reorg(4, { length: 6, logs: (number) => valued(1000 + number) })
      yield* until("block 28 is reached", () => driven.upTo === 28)
      assert.strictEqual(driven.exit, undefined)
      assert.deepStrictEqual(
        driven.events.slice(-3).map((event) => (event.fields()["args"] as any).value),
        [26n, 1027n, 1028n],
      )
    }),
  )

  live(
    "a node that falls behind and comes back",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 50)
      node.lag = 25
      yield* until("the trouble is told", () => driven.trouble !== null)
      assert.match(driven.trouble!, /is at block 25; waiting until it has block 51/)
      chain.mine(1, valued)
      node.lag = 0
      yield* until("the next block is read", () => driven.upTo === 51)
      assert.strictEqual(driven.exit, undefined)
      assert.strictEqual(driven.trouble, null)
      assert.strictEqual(driven.events.length, 51)
    }),
  )

  live(
    "another hash that is answered once",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const other = new SimulatedChain({ seed: "other" }).mine(30, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      let lies = 1
      node.fault = (method, [tag]) => {
        if (method !== "eth_getBlockByNumber" || tag !== "latest" || lies-- <= 0) return undefined
        const { logs: _, ...block } = other.head
        return { result: { ...block, number: "0x1e", timestamp: "0x1" } }
      }
      yield* until("it was answered", () => lies <= 0)
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo === 31)
      assert.strictEqual(driven.exit, undefined)
    }),
  )

  live(
    "another fork at one provider, while one that is as far still has our blocks",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const good = yield* simulatedNode(chain)
      const bad = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, urls: [bad.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      bad.chain = new SimulatedChain({ seed: "other" }).mine(30)
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo === 31)
      yield* someTime
      assert.strictEqual(driven.exit, undefined)
      assert.strictEqual(driven.events.length, 31)
    }),
  )

  live(
    "a fork that flips back before it was believed",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(30, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, poll_interval_ms: 100 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 30)
      const gone = chain.reorg(2)
      const asked = node.count("eth_getBlockByNumber")
      // the first comparison asks for many blocks at once; flip back before the second
      yield* until("the fork was compared", () => node.count("eth_getBlockByNumber") > asked + 20)
      chain.restore(gone)
      chain.mine(1, valued)
      yield* until("the next block is read", () => driven.upTo === 31)
      assert.strictEqual(driven.exit, undefined)
    }),
  )
})

const anchorsOf = (chain: SimulatedChain, numbers: ReadonlyArray<number>): ReadonlyArray<Anchor> =>
  numbers.map((number) => ({ primary: number, hash: chain.at(number)!.hash }))

describe("resuming", () => {
  live(
    "goes on behind the cursor when the recorded hashes still stand",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { cursor: endOf(40), anchors: anchorsOf(chain, [40, 39, 38]) })
      yield* until("the head is reached", () => driven.upTo === 50)
      assert.strictEqual(driven.events.length, 10)
    }),
  )

  live(
    "after a fork while the process was down is invalidated from the newest hash that still stands",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const anchors = anchorsOf(chain, [50, 49, 48, 30, 20])
      chain.reorg(10, { length: 15 })
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { cursor: endOf(50), anchors })
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(30))
      assert.strictEqual(driven.batches.length, 0)
    }),
  )

  live(
    "when none of the hashes stands is invalidated from below the oldest",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const anchors = anchorsOf(chain, [50, 49, 48])
      chain.reorg(10, { length: 15 })
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { cursor: endOf(50), anchors })
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(47))
      assert.match((driven.outcome as any).cause, /none of the recorded blocks down to 48/)
    }),
  )

  live(
    "at a node that is behind waits, and finds a fork as soon as the node is there",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(50, valued)
      const anchors = anchorsOf(chain, [50, 49, 48])
      chain.reorg(10, { length: 15 })
      const node = yield* simulatedNode(chain)
      node.lag = 30
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { cursor: endOf(50), anchors })
      yield* until("the trouble is told", () => driven.trouble !== null)
      assert.strictEqual(driven.exit, undefined)
      node.lag = 0
      yield* until("the run ends", () => driven.exit !== undefined)
      assert.deepStrictEqual((driven.outcome as any).from, endOf(47))
    }),
  )
})

describe("a fork in the middle of a read", () => {
  live(
    "leaves no log of the dead blocks",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, valued)
      const node = yield* simulatedNode(chain)
      let forked = false
      node.fault = (method) => {
        if (method === "eth_getLogs" && !forked) {
          forked = true
          chain.reorg(5, { length: 6, logs: (number) => valued(1000 + number) })
        }
        return undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 21)
      assert.deepStrictEqual(
        driven.events.map((event) => Number((event.fields()["args"] as any).value)),
        [...Array.from({ length: 15 }, (_, i) => i + 1), 1016, 1017, 1018, 1019, 1020, 1021],
      )
      assert.deepStrictEqual(driven.troubles, [])
      assert.isTrue(driven.anchors.every(({ primary, hash }) => chain.at(primary)!.hash === hash))
    }),
  )

  live(
    "is noticed at a node that takes no block hash",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, valued)
      const node = yield* simulatedNode(chain)
      let forked = false
      node.fault = (method, [filter]) => {
        if (method !== "eth_getLogs") return undefined
        if (filter.blockHash !== undefined) return { error: { code: -32602, message: "invalid params: blockHash" } }
        if (!forked) {
          forked = true
          chain.reorg(5, { length: 6, logs: (number) => valued(1000 + number) })
        }
        return undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 21)
      assert.deepStrictEqual(
        driven.events.slice(14).map((event) => Number((event.fields()["args"] as any).value)),
        [15, 1016, 1017, 1018, 1019, 1020, 1021],
      )
    }),
  )

  live(
    "of a scan is read again until all is of one chain, a few times, and never yielded as blocks of two",
    Effect.gen(function* () {
      /** A scan behind whose first near blocks the chain forks, so deep and so often. */
      const scanForked = Effect.fnUntraced(function* (from: number, depth: number, times: number) {
        const chain = new SimulatedChain().mine(100, valued)
        const node = yield* simulatedNode(chain)
        let forks = 0
        node.fault = (method, [tag]) => {
          if (method === "eth_getBlockByNumber" && Number(tag) === 69 && forks < times) {
            forks++
            chain.reorg(depth, { length: depth, logs: (number) => valued(1000 * forks + number) })
          }
          return undefined
        }
        const source = yield* makeSource({ ...quick, url: node.url })
        const result = yield* Effect.result(scan(source, from, 100))
        return { chain, result, forks: () => forks }
      })
      const [twice, always, deep] = yield* Effect.all(
        [scanForked(37, 60, 2), scanForked(37, 60, 100), scanForked(30, 75, 1)],
        { concurrency: 3 },
      )
      assert.strictEqual(twice.forks(), 2)
      assert.deepStrictEqual(
        Result.getOrThrow(twice.result).flatMap(({ events }) =>
          events.map((event) => (event.fields()["block"] as any).hash),
        ),
        twice.chain.canonicalLogs(37, 100).map(({ hash }) => hash),
      )
      assert.strictEqual(always.forks(), 4)
      // Blocks 30 to 36 lay too deep to be held back, and are gone.
      for (const [{ result }, block] of [[always, 68] as const, [deep, 36] as const])
        assert.deepStrictEqual(
          result,
          Result.fail(
            new SourceUnavailable({
              reason: `the chain replaced block ${block} by another one while it was read; read the range again`,
            }),
          ),
        )
    }),
  )
})

describe("a fork deeper than the usual window of hashes", () => {
  live(
    "is found where it began if the journal is as deep, and from below the oldest hash if not",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(2_100)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const numbers = Array.from({ length: 2_048 }, (_, i) => 2_048 - i)
      const resume = { cursor: endOf(2_048), anchors: anchorsOf(chain, numbers) }
      const [deep, shallow] = [yield* drive(source, { ...resume, depth: 3_000 }), yield* drive(source, resume)]
      const both = [deep.driven, shallow.driven]
      yield* until("the head is reached", () => both.every(({ upTo }) => upTo === 2_100))
      chain.reorg(2_080)
      yield* until("the runs end", () => both.every(({ exit }) => exit !== undefined), 30)
      assert.deepStrictEqual(
        both.map(({ outcome }) => (outcome as any).from.primary),
        [20, 2_100 - 2_048],
      )
      assert.match((shallow.driven.outcome as any).cause, /none of the recorded blocks down to 53/)
    }),
  )
})
