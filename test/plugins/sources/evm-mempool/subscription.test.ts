import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { refusesSockets, repeatingSockets, silentSockets } from "../../../../server/devnet/simulated/faults/sockets.ts"
import { type FaultHook, type SimulatedNode, simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf } from "../../../../server/devnet/simulated/transfer.ts"
import { networkNow, type Runtime } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { Told, watchMempool } from "./support.ts"

/** A poll interval that no test waits for. */
const HOUR = 3_600_000

const unsupported = { error: { code: -32601, message: "the method does not exist" } }

/** A node that lacks what `lacks` says. */
const lacking =
  (lacks: (method: string, params: ReadonlyArray<any>) => boolean): FaultHook =>
  (method, params) =>
    lacks(method, params) ? unsupported : undefined

const POLLS = ["eth_newPendingTransactionFilter", "txpool_content"]

/** A node with a pool, watched over HTTP and WebSocket, and what is sent to its pool. */
const watched = Effect.fnUntraced(function* (pollMs: number, fault: FaultHook = () => undefined) {
  const chain = new SimulatedChain()
  const node = yield* simulatedNode(chain)
  node.fault = fault
  const told = new Told()
  const runtime = yield* watchMempool({
    urls: [node.url],
    wsUrl: node.wsUrl,
    pollMs,
    chainId: 1,
    selectors: { all: { kind: "transaction" } },
    told,
  })
  const sent: Array<string> = []
  const send = (what: string, count = 1) =>
    Effect.suspend(() => {
      for (let i = 0; i < count; i++)
        sent.push(chain.pool.add({ from: addressOf(1), to: addressOf(2), value: sent.length }).hash)
      return waitUntil(`all is told: ${what}`, () => told.events.length >= sent.length)
    })
  const isSubscribed = waitUntil("it is subscribed", () => node.sockets.subscriptions === 1)
  yield* isSubscribed
  return { node, told, runtime, sent, send, isSubscribed }
})

const errorOf = (runtime: Runtime) => Effect.map(networkNow(runtime, "pool"), ({ error }) => error)

const says = (runtime: Runtime, what: RegExp | null) =>
  waitUntil(
    `the network's error is ${what}`,
    Effect.map(errorOf(runtime), (error) => (what === null ? error === null : error !== null && what.test(error))),
  )

const polls = (node: SimulatedNode) => node.count("eth_getFilterChanges") + node.count("txpool_content")

describe("evm-mempool with a WebSocket", () => {
  for (const [what, lacks, fetches] of [
    ["whole transactions", () => false, false],
    ["hashes", (method: string, params: ReadonlyArray<any>) => method === "eth_subscribe" && params.length > 1, true],
  ] as const)
    it.live(`is told ${what} as they come, each once, between polls that nobody waits for`, () =>
      Effect.gen(function* () {
        const { node, told, sent, send, runtime } = yield* watched(HOUR, lacking(lacks))
        yield* send("one", 1)
        yield* send("a burst", 300)
        node.misbehave(repeatingSockets())
        yield* send("twice over the socket", 3)
        assert.deepStrictEqual(told.hashes.toSorted(), sent.toSorted())
        assert.isAtMost(polls(node), 1)
        assert.strictEqual(node.count("eth_getTransactionByHash") > 0, fetches)
        assert.isNull(yield* errorOf(runtime))
      }),
    )

  it.live("asks for what is pending while it is gone, says so, and tells nothing twice when it is back", () =>
    Effect.gen(function* () {
      let hasFilter = true
      const { node, told, sent, send, runtime, isSubscribed } = yield* watched(20, (method) =>
        !hasFilter && method === POLLS[0] ? unsupported : undefined,
      )
      yield* send("over the socket", 2)
      const heal = node.misbehave(refusesSockets())
      node.sockets.drop()
      yield* send("by the filter", 2)
      yield* says(runtime, /^ws_url .* is lost: .*; nodes are asked what is pending until it is back$/)
      hasFilter = false
      node.forgetFilters()
      yield* send("from the pool", 2)
      heal()
      yield* isSubscribed
      yield* send("over the socket again", 2)
      yield* says(runtime, null)
      assert.deepStrictEqual(told.hashes.toSorted(), sent.toSorted())
    }),
  )

  it.live("needs nothing else of a node as long as it is there, and says what the node lacks when it is not", () =>
    Effect.gen(function* () {
      const { node, told, sent, send, runtime, isSubscribed } = yield* watched(
        20,
        lacking((method) => POLLS.includes(method)),
      )
      yield* send("over the socket", 2)
      yield* waitUntil("it was asked in vain", () => node.count("txpool_content") > 0)
      assert.isNull(yield* errorOf(runtime))
      const heal = node.misbehave(refusesSockets())
      node.sockets.drop()
      yield* says(runtime, /offers neither eth_newPendingTransactionFilter nor txpool_content .*; ws_url .* is lost/)
      heal()
      yield* isSubscribed
      yield* send("over the socket again", 2)
      yield* says(runtime, null)
      assert.deepStrictEqual(told.hashes, sent)
    }),
  )

  it.live("is opened again when it is silent, and what it hides is found meanwhile", () =>
    Effect.gen(function* () {
      const { node, told, sent, send, isSubscribed } = yield* watched(20)
      const heal = node.misbehave(silentSockets())
      const before = node.count("eth_subscribe")
      while (node.count("eth_subscribe") === before) yield* send("by polls")
      heal()
      yield* isSubscribed
      yield* send("over the socket")
      assert.deepStrictEqual(told.hashes, sent)
    }),
  )
})
