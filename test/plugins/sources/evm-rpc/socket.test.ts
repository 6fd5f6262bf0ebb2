import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Metric } from "effect"
import { Egress } from "../../../../core/plugin/egress.ts"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { hangingSockets, refusesSockets, silentSockets } from "../../../../server/devnet/simulated/faults/sockets.ts"
import { type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { type Driven, drive, makeSource, outside, positions, quick, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

/** A poll interval that no test waits for. */
const HOUR = 3_600_000

interface Followed {
  readonly chain: SimulatedChain
  readonly node: SimulatedNode
  /** Another node, which announces the blocks as they come. */
  readonly announcer: SimulatedNode
  readonly driven: Driven
  /** What was logged, without debug lines. */
  readonly lines: ReadonlyArray<string>
}

/** A run at the head of 5 blocks; without `waits` it is subscribed. */
const follow = Effect.fnUntraced(function* (
  interval: number,
  options: {
    readonly prepare?: (announcer: SimulatedNode) => void
    readonly waits?: false
    readonly config?: { readonly confirmations: number }
  } = {},
) {
  const chain = new SimulatedChain().mine(5, valued)
  const node = yield* simulatedNode(chain)
  const announcer = yield* simulatedNode(chain)
  options.prepare?.(announcer)
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel !== "Debug") lines.push(`${logLevel} ${String(message)}`)
  })
  const source = yield* makeSource({
    ...quick,
    url: node.url,
    ws_url: announcer.wsUrl,
    poll_interval_ms: interval,
    ...options.config,
  })
  const { driven } = yield* drive(source).pipe(Effect.provide(Logger.layer([logger])))
  const deep = options.config?.confirmations ?? 0
  yield* until("the head is reached", () => driven.upTo === 5 - deep)
  if (options.waits !== false) yield* until("it is subscribed", () => announcer.sockets.subscriptions === 1)
  return { chain, node, announcer, driven, lines } satisfies Followed
})

/** How often the socket was lost for a cause. */
const lossesOf = (announcer: SimulatedNode, cause: string) =>
  Effect.map(Metric.snapshot, (metrics) => {
    const found = metrics.find(
      ({ id, attributes }) =>
        id === "blockwatcher_rpc_socket_losses_total" &&
        attributes?.["node"] === new URL(announcer.url).host &&
        attributes["cause"] === cause,
    )
    return Number((found?.state as { readonly count: number } | undefined)?.count ?? 0)
  })

describe.concurrent("a WebSocket that announces new blocks", () => {
  live(
    "wakes the poller at once; whatever it says beside them is nothing",
    Effect.gen(function* () {
      const { chain, node, announcer, driven } = yield* follow(HOUR)
      for (let block = 6; block <= 10; block++) {
        chain.mine(1, valued)
        yield* until("the block is seen", () => driven.upTo === block)
      }
      assert.deepStrictEqual(positions(driven.events), all(10))
      const polls = node.count("eth_getBlockByNumber")
      // repeats, older blocks, garbage
      announcer.sockets.announce(chain.head)
      announcer.sockets.announce(chain.at(8)!)
      for (const message of ["no JSON", "[]", '{"method":"eth_subscription","params":null}', '{"id":7,"error":"x"}'])
        announcer.sockets.send(message)
      chain.mine(1, valued)
      yield* until("the block is seen", () => driven.upTo === 11)
      assert.isAtMost(node.count("eth_getBlockByNumber"), polls + 1)
      chain.reorg(1, { logs: () => valued(100) })
      yield* until("the fork is found", () => driven.exit !== undefined)
      assert.strictEqual(driven.outcome?._tag, "Invalidated")
    }),
  )

  for (const confirmations of [0, 3])
    live(
      `brings a block's logs along with the head, at ${confirmations} confirmations`,
      Effect.gen(function* () {
        const { chain, node, driven } = yield* follow(HOUR, { config: { confirmations } })
        const next = Effect.suspend(() => {
          chain.mine(1, valued)
          return until("the block is seen", () => driven.upTo === chain.head.number - confirmations)
        })
        yield* Effect.repeat(next, { times: confirmations })
        const before = node.requests
        yield* Effect.repeat(next, { times: 9 })
        assert.strictEqual(node.requests - before, 10)
        // logs that do not come along, or are not all there, are asked for in their turn
        for (const fault of [{ error: { code: -32000, message: "unknown block" } }, { result: [] }]) {
          let isFirst = true
          node.fault = (method) => {
            if (method !== "eth_getLogs" || !isFirst) return undefined
            isFirst = false
            return fault
          }
          yield* next
          assert.isFalse(isFirst)
        }
        assert.deepStrictEqual(positions(driven.events), all(driven.upTo))
        assert.deepStrictEqual(driven.troubles, [])
      }),
    )

  live(
    "may be ahead of the node that is polled: the block is looked for a few more times",
    Effect.gen(function* () {
      const { chain, node, driven } = yield* follow(HOUR)
      node.lag = 1
      const before = node.count("eth_getBlockByNumber")
      chain.mine(1, valued)
      yield* until("it was looked for", () => node.count("eth_getBlockByNumber") >= before + 3)
      node.lag = 0
      yield* until("the block is seen", () => driven.upTo === 6)
    }),
  )

  live(
    "that lies costs a few polls, is ignored, and is believed again once it is right",
    Effect.gen(function* () {
      const { chain, node, announcer, driven } = yield* follow(200)
      const other = new SimulatedChain({ seed: "other" }).mine(500)
      const before = node.count("eth_getBlockByNumber")
      let announced = 0
      const lie = Effect.suspend(() => {
        announcer.sockets.announce(other.at(6 + (announced++ % 400))!)
        announcer.sockets.announce(chain.head) // which is true, and nothing new
        return Effect.sleep("2 millis")
      })
      const begun = performance.now()
      yield* Effect.repeat(lie, { times: 300 })
      const ordinary = Math.ceil((performance.now() - begun) / 200)
      assert.isAtMost(node.count("eth_getBlockByNumber") - before, ordinary + 18)
      assert.strictEqual(driven.upTo, 5)
      assert.deepStrictEqual(driven.troubles, [])
      chain.mine(1, valued)
      yield* until("the interval's poll sees the block", () => driven.upTo === 6)
      const polls = node.count("eth_getBlockByNumber")
      chain.mine(1, valued)
      yield* until("the next is seen", () => driven.upTo === 7)
      assert.isAtMost(node.count("eth_getBlockByNumber"), polls + 2)
      assert.deepStrictEqual(positions(driven.events), all(7))
    }),
  )

  live(
    "that is cut is opened again; its loss and its return are logged once, and counted",
    Effect.gen(function* () {
      const { chain, announcer, driven, lines } = yield* follow(50)
      const heal = announcer.misbehave(refusesSockets())
      announcer.sockets.drop()
      yield* until("it was tried again", () => announcer.sockets.tried >= 3)
      chain.mine(1, valued)
      yield* until("polling sees the block", () => driven.upTo === 6)
      heal()
      yield* until("it is subscribed again", () => announcer.sockets.subscriptions === 1)
      for (let block = 7; block <= 9; block++) {
        chain.mine(1, valued)
        yield* until("the block is seen", () => driven.upTo === block)
      }
      yield* until("its return is logged", () => lines.length === 2)
      const { host } = new URL(announcer.url)
      assert.match(lines[0]!, new RegExp(`^Warn.* ws_url ${host} is lost: .*connection was closed; new blocks`))
      assert.match(lines[1]!, new RegExp(`^Info.* ws_url ${host} tells of new blocks again$`))
      assert.strictEqual(yield* lossesOf(announcer, "ended"), 1)
      assert.isAtLeast(yield* lossesOf(announcer, "refused"), 1)
      assert.deepStrictEqual(driven.troubles, [])
      assert.deepStrictEqual(positions(driven.events), all(9))
    }),
  )

  live(
    "that is silent while polling sees new blocks is opened again, and counted",
    Effect.gen(function* () {
      const { chain, announcer, driven, lines } = yield* follow(20)
      announcer.misbehave(silentSockets())
      for (let block = 6; announcer.sockets.tried === 1; block++) {
        chain.mine(1, valued)
        yield* until("polling sees the block", () => driven.upTo === block)
        assert.isBelow(block, 20)
      }
      assert.strictEqual(yield* lossesOf(announcer, "silent"), 1)
      assert.match(lines[0]!, /announced none of the last new blocks/)
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )

  const refusals: ReadonlyArray<readonly [string, (announcer: SimulatedNode) => void, RegExp | null]> = [
    ["refuses", (announcer) => announcer.misbehave(refusesSockets()), /HTTP 403/],
    ["hangs", (announcer) => announcer.misbehave(hangingSockets()), null],
    [
      "knows no subscriptions",
      (announcer) =>
        (announcer.fault = (method) =>
          method === "eth_subscribe" ? { error: { code: -32601, message: "the method does not exist" } } : undefined),
      /eth_subscribe: .*the method does not exist/,
    ],
    [
      "serves another chain",
      (announcer) => (announcer.fault = (method) => (method === "eth_chainId" ? { result: "0x5" } : undefined)),
      /serves chain 5, but chain_id is 1; correct ws_url/,
    ],
  ]
  for (const [what, prepare, reason] of refusals)
    live(
      `that ${what} changes nothing but latency`,
      Effect.gen(function* () {
        const { chain, announcer, driven, lines } = yield* follow(20, { prepare, waits: false })
        yield* until("it was tried", () => announcer.sockets.tried >= (reason === null ? 1 : 2))
        for (let block = 6; block <= 8; block++) {
          chain.mine(1, valued)
          yield* until("the block is seen", () => driven.upTo === block)
        }
        if (reason !== null) assert.match(lines[0]!, reason)
        assert.isAtMost(lines.length, 1)
        assert.deepStrictEqual(driven.troubles, [])
        assert.deepStrictEqual(positions(driven.events), all(8))
      }),
    )

  it.live("is dialled only where the egress policy allows it", () =>
    Effect.gen(function* () {
      const announcer = yield* simulatedNode(new SimulatedChain())
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const source = yield* makeSource({ ...quick, url: "http://127.0.0.1:1", ws_url: announcer.wsUrl })
      yield* drive(source).pipe(Effect.provide(Logger.layer([logger])))
      yield* until("it was refused", () => lines.some((line) => line.includes("ws_url")))
      assert.match(
        lines.find((line) => line.includes("ws_url"))!,
        /egress policy does not allow 127.0.0.1/,
      )
      assert.strictEqual(announcer.sockets.tried, 0)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(Egress.layer({ loopback: false, allow: [] }), Layer.succeed(Secrets, secretsFrom({}))),
      ),
    ),
  )
})
