import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { answer } from "../../../../server/devnet/simulated/methods.ts"
import { type Fault, simulatedNode, SimulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, scan, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(
  outside,
  Layer.succeed(Secrets, secretsFrom({ "env:NODE": "http://127.0.0.1:1/secretkey123" })),
)

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

const error = (message: string, code = -32000): Fault => ({ error: { code, message } })

const span = (filter: any): number => Number(filter.toBlock) - Number(filter.fromBlock) + 1

describe("limits of ranges", () => {
  const limits: ReadonlyArray<readonly [string, (filter: any) => Fault | undefined, number]> = [
    ["is learned from the message", (f) => (span(f) > 30 ? error("Max range: 30") : undefined), 1],
    [
      "is found by halving where the message has none",
      (f) => (span(f) > 30 ? error("Block range limit exceeded.") : undefined),
      5,
    ],
    [
      "is found when the suggested range is the one asked for",
      (f) => (span(f) > 30 ? error(`Try with this block range [${f.fromBlock}, ${f.toBlock}]`) : undefined),
      5,
    ],
    [
      "on results shrinks the range for as long as needed",
      (f) => (span(f) > 7 ? error("query returned more than 7 results", -32005) : undefined),
      20,
    ],
    [
      "of bytes behind HTTP 413",
      (f) => (span(f) > 30 ? { http: { status: 413, body: "<html>too large</html>" } } : undefined),
      5,
    ],
  ]
  for (const [name, limit, most] of limits)
    live(
      `a limit ${name}`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(400, valued)
        const node = yield* simulatedNode(chain)
        let refusals = 0
        node.fault = (method, [filter]) => {
          const fault = method === "eth_getLogs" && filter.fromBlock !== undefined ? limit(filter) : undefined
          if (fault !== undefined) refusals++
          return fault
        }
        const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 300 })
        const { driven } = yield* drive(source)
        yield* until("the head is reached", () => driven.upTo === 400)
        assert.deepStrictEqual(positions(driven.events), all(400))
        assert.isAtMost(refusals, 4 * most) // ranges in flight at the same time learn it at the same time
        assert.deepStrictEqual(driven.troubles, [])
      }),
    )

  live(
    "a quota does not shrink the range, and is told",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(400, valued)
      const node = yield* simulatedNode(chain)
      let refusals = 3
      const spans: Array<number> = []
      node.fault = (method, [filter]) => {
        if (method !== "eth_getLogs" || filter.fromBlock === undefined) return undefined
        spans.push(span(filter))
        return refusals-- > 0 ? error("daily request count exceeded, request rate limited", -32005) : undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 100 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 400)
      assert.deepStrictEqual(positions(driven.events), all(400))
      assert.isTrue(spans.every((blocks) => blocks === 100 || blocks === 37))
      assert.match(driven.troubles[0]!, /daily request count/)
      assert.strictEqual(driven.trouble, null)
    }),
  )

  live(
    "Retry-After is waited for",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, valued)
      const node = yield* simulatedNode(chain)
      let refused: number | undefined
      let answered: number | undefined
      node.fault = (method) => {
        if (method !== "eth_getLogs") return undefined
        if (refused === undefined) {
          refused = performance.now()
          return { http: { status: 429, body: "slow down", headers: { "retry-after": "1" } } }
        }
        answered ??= performance.now()
        return undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 3)
      assert.isAtLeast(answered! - refused!, 950)
    }),
  )
})

describe("answers that are none", () => {
  const faults: ReadonlyArray<readonly [string, Fault]> = [
    ["HTML with status 200", { http: { status: 200, body: "<html>hello</html>" } }],
    ["an empty body", { http: { status: 200, body: "" } }],
    ["status 502", { http: { status: 502, body: "bad gateway" } }],
    ["a closed connection", "drop"],
    ["another id", { http: { status: 200, body: '{"jsonrpc":"2.0","id":987654,"result":[]}' } }],
    ["neither result nor error", { result: undefined }],
    ["null where logs should be", { result: null }],
    ["an object where logs should be", { result: {} }],
    ["a log that lacks everything", { result: [{}] }],
    ["an error inside a batch", error("internal error", -32603)],
    [
      "an error that is only a text",
      { http: { status: 200, body: '{"jsonrpc":"2.0","id":null,"error":"overloaded"}' } },
    ],
  ]
  for (const [name, fault] of faults)
    live(
      `${name} is told and asked again, and never read as no logs`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(100, valued)
        const node = yield* simulatedNode(chain)
        let left = 2
        node.fault = (method) => (method === "eth_getLogs" && left-- > 0 ? fault : undefined)
        const source = yield* makeSource({ ...quick, url: node.url })
        const { driven } = yield* drive(source)
        yield* until("the head is reached", () => driven.upTo === 100)
        assert.deepStrictEqual(positions(driven.events), all(100))
        assert.isAtLeast(driven.troubles.length, 1)
        assert.strictEqual(driven.trouble, null)
      }),
    )

  live(
    "identical repeats of a log collapse; different logs of one index are refused",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, valued)
      const node = yield* simulatedNode(chain)
      const plainNode = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const raw = (yield* Effect.promise(() =>
        fetch(plainNode.url, {
          method: "POST",
          body: JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            method: "eth_getLogs",
            params: [{ blockHash: chain.at(2)!.hash }],
          }),
        }).then((response) => response.json()),
      )) as any
      let answers: ReadonlyArray<unknown> = [raw.result[0], raw.result[0]]
      node.fault = (method, [filter]) =>
        method === "eth_getLogs" && filter.blockHash === chain.at(2)!.hash ? { result: answers } : undefined
      assert.deepStrictEqual(positions((yield* scan(source, 1, 3)).flatMap(({ events }) => events)), all(3))
      answers = [raw.result[0], { ...raw.result[0], data: `0x${"1".repeat(64)}` }]
      const failed = (yield* Effect.flip(scan(source, 1, 3))) as Error
      assert.match(failed.message, /two different logs have the index 0 in block 2/)
    }),
  )

  live(
    "a node that takes no batches is asked call by call",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(100, valued)
      const node = yield* simulatedNode(chain)
      node.batches = false
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 100)
      assert.deepStrictEqual(positions(driven.events), all(100))
    }),
  )
})

describe("logs that are missing", () => {
  live(
    "an empty answer that the bloom contradicts is asked for at another provider",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(5, valued)
      const [lazy, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      lazy.fault = (method) => (method === "eth_getLogs" ? { result: [] } : undefined)
      const source = yield* makeSource({ ...quick, urls: [lazy.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 5)
      assert.deepStrictEqual(positions(driven.events), all(5))
    }),
  )

  live(
    "logs of one address that are missing beside those of another are asked for at another provider",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(5, (number) => [transfer(1, 2, 3, number), transfer(9, 2, 3, number)])
      const [lazy, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      lazy.fault = (method, params) => {
        if (method !== "eth_getLogs") return undefined
        const given = answer(lazy, method, params)
        return "result" in given ? { result: (given.result as ReadonlyArray<unknown>).slice(0, 1) } : given
      }
      const source = yield* makeSource({ ...quick, urls: [lazy.url, good.url] })
      const interests = {
        version: 1,
        interests: [1, 9].map((token) => ({
          id: `${token}`,
          selector: { kind: "event" as const, event: TRANSFER, address: addressOf(token) },
        })),
      }
      const { driven } = yield* drive(source, { interests })
      yield* until("the head is reached", () => driven.upTo === 5)
      assert.deepStrictEqual(
        positions(driven.events),
        [1, 2, 3, 4, 5].flatMap((number) => [`${number}:0`, `${number}:1`]),
      )
    }),
  )

  live(
    "an empty answer that stays empty is accepted after a few tries",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(5, valued)
      const node = yield* simulatedNode(chain)
      node.fault = (method) => (method === "eth_getLogs" ? { result: [] } : undefined)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 5)
      assert.strictEqual(node.count("eth_getLogs"), 6 + 2 * 5) // blocks 0 to 5, then twice those in doubt
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  live(
    "a bloom of zeros says nothing",
    Effect.gen(function* () {
      const chain = new SimulatedChain({ zeroBlooms: true }).mine(5, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 5)
      assert.deepStrictEqual(positions(driven.events), all(5))
    }),
  )

  live(
    "a range that ends above the head of the node that answers is not accepted",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, valued)
      const [behind, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      behind.lag = 200
      // its load balancer answers the head of another machine
      behind.fault = (method, [tag]) => {
        if (method !== "eth_getBlockByNumber" || tag !== "latest") return undefined
        const { number, hash, parentHash, timestamp } = chain.head
        return {
          result: { number: `0x${number.toString(16)}`, hash, parentHash, timestamp: `0x${timestamp.toString(16)}` },
        }
      }
      const source = yield* makeSource({ ...quick, urls: [behind.url, good.url], max_block_range: 50 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 300)
      assert.deepStrictEqual(positions(driven.events), all(300))
    }),
  )

  live(
    "a node without old blocks is not asked for them again",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, valued)
      const [young, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      let refusals = 0
      young.fault = (method, [filter]) => {
        if (method !== "eth_getLogs" || filter.fromBlock === undefined || Number(filter.fromBlock) >= 200)
          return undefined
        refusals++
        return error(`height is not available (requested height: ${Number(filter.fromBlock)}, base height: 200)`)
      }
      const source = yield* makeSource({ ...quick, urls: [young.url, good.url], max_block_range: 10 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 300)
      assert.deepStrictEqual(positions(driven.events), all(300))
      assert.isAtMost(refusals, 8)
      assert.isAtLeast(young.count("eth_getLogs"), 10)
    }),
  )
})

describe("nodes that come and go", () => {
  live(
    "without any node the trouble is told, and it goes on by itself when one is back",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      yield* Effect.promise(() => node.stop())
      yield* until("the trouble is told", () => driven.trouble !== null)
      assert.include(driven.trouble!, `127.0.0.1:${node.port}`)
      chain.mine(5, valued)
      const again = yield* Effect.promise(() => SimulatedNode.start(chain, node.port))
      yield* Effect.addFinalizer(() => Effect.promise(() => again.stop()))
      yield* until("it goes on", () => driven.upTo === 15)
      yield* until("the trouble is over", () => driven.trouble === null)
      assert.deepStrictEqual(positions(driven.events), all(15))
    }),
  )

  live(
    "the next URL takes over, and the first one is used again once it is well",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [first, second] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const source = yield* makeSource({ ...quick, urls: [first.url, second.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      assert.strictEqual(second.count("eth_getLogs"), 0)
      first.fault = () => "drop"
      chain.mine(1, valued)
      yield* until("the second takes over", () => driven.upTo === 11)
      assert.isAtLeast(second.count("eth_getLogs"), 1)
      assert.deepStrictEqual(driven.troubles, [])
      first.fault = () => undefined
      const before = first.count("eth_getBlockByNumber")
      yield* until("the first is used again", () => first.count("eth_getBlockByNumber") > before + 2)
      const served = second.count("eth_getLogs")
      chain.mine(1, valued)
      yield* until("the first serves", () => driven.upTo === 12)
      assert.strictEqual(second.count("eth_getLogs"), served)
    }),
  )

  live(
    "a provider that stands still while another goes on is left aside",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [stuck, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      const source = yield* makeSource({ ...quick, urls: [stuck.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      stuck.lag = 3
      chain.mine(3, valued)
      yield* until("the other one is followed", () => driven.upTo === 13)
      assert.deepStrictEqual(positions(driven.events), all(13))
    }),
  )

  live(
    "a URL of another chain is left out when another one is right, and refused when none is",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const [wrong, right] = [
        yield* simulatedNode(new SimulatedChain({ chainId: 7 }).mine(90)),
        yield* simulatedNode(chain),
      ]
      const source = yield* makeSource({ ...quick, urls: [wrong.url, right.url] })
      yield* source.start
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 10)
      assert.strictEqual(wrong.count("eth_getLogs"), 0)
      const lonely = yield* makeSource({ ...quick, urls: [wrong.url] })
      const run = yield* drive(lonely)
      yield* until("the run ends", () => run.driven.exit !== undefined)
      assert.include(JSON.stringify(run.driven.exit), "SourceRefused")
    }),
  )

  live(
    "a URL from a secret is never shown",
    Effect.gen(function* () {
      const source = yield* makeSource({ ...quick, url: "env:NODE" })
      const failed = (yield* Effect.flip(source.start)) as Error
      assert.include(failed.message, "env:NODE")
      assert.notInclude(failed.message, "secretkey123")
      assert.notInclude(failed.message, "127.0.0.1")
    }),
  )

  live(
    "no more requests are sent than allowed",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, valued)
      const node = yield* simulatedNode(chain)
      const times: Array<number> = []
      node.fault = () => {
        times.push(performance.now())
        return undefined
      }
      const source = yield* makeSource({ ...quick, url: node.url, requests_per_second: 20 })
      yield* drive(source)
      yield* until("some were sent", () => times.length >= 40)
      assert.isAtLeast(times.at(-1)! - times[0]!, 800)
    }),
  )
})
