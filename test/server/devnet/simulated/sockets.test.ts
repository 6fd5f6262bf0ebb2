import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, type Scope } from "effect"
import { WebSocket } from "ws"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import type { NodeFault } from "../../../../server/devnet/simulated/fault.ts"
import * as sockets from "../../../../server/devnet/simulated/faults/sockets.ts"
import { standsStill, staysBehind } from "../../../../server/devnet/simulated/faults/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, transfer } from "../../../../server/devnet/simulated/transfer.ts"

const valued = (number: number) => [transfer(1, 2, 3, number)]

/** A client that keeps what subscriptions sent, and asks one thing after the other. */
const connect = (url: string): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Client>((resume) => {
      const socket = new WebSocket(url)
      const client = new Client(socket)
      socket.once("open", () => resume(Effect.succeed(client)))
      socket.once("close", () => resume(Effect.succeed(client)))
      socket.on("error", () => {})
      return Effect.sync(() => socket.terminate())
    }),
    ({ socket }) => Effect.sync(() => socket.terminate()),
    { interruptible: true },
  )

class Client {
  readonly socket: WebSocket
  readonly received: Array<any> = []
  isOpen = true
  #answers = new Map<number, (answer: any) => void>()
  #id = 0

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on("close", () => {
      this.isOpen = false
      for (const answer of this.#answers.values()) answer(null)
    })
    socket.on("message", (data) => {
      const message = JSON.parse(String(data))
      if (message.id === undefined) this.received.push(message.params.result)
      else this.#answers.get(message.id)?.(message)
    })
  }

  call(method: string, ...params: ReadonlyArray<unknown>): Effect.Effect<any> {
    return Effect.promise(
      () =>
        new Promise((resolve) => {
          const id = ++this.#id
          this.#answers.set(id, resolve)
          this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
        }),
    )
  }
}

/** Subscribes, lets the chain go on, and answers what had come when a later call was answered. */
const receivedUnder = Effect.fnUntraced(function* (
  faults: ReadonlyArray<NodeFault>,
  kind: string,
  act: (chain: SimulatedChain) => void,
  options?: unknown,
) {
  const chain = new SimulatedChain().mine(5, valued)
  const node = yield* simulatedNode(chain)
  const client = yield* connect(node.wsUrl)
  yield* client.call("eth_subscribe", kind, ...(options === undefined ? [] : [options]))
  node.misbehave(...faults)
  act(chain)
  node.faults.clear()
  if (client.isOpen) yield* client.call("eth_chainId")
  return client
})

const numbers = ({ received }: Client) => received.map(({ number }) => Number(number))

describe("a simulated node over WebSocket", () => {
  it.live("answers calls, and sends new heads, also those of a fork", () =>
    Effect.gen(function* () {
      const client = yield* receivedUnder([], "newHeads", (chain) => {
        chain.mine(2)
        chain.reorg(2, { length: 3 })
      })
      assert.deepStrictEqual(numbers(client), [6, 7, 6, 7, 8])
      assert.strictEqual((yield* client.call("eth_blockNumber")).result, "0x8")
    }),
  )

  it.live("sends the logs that a filter lets through, and those that a fork removes", () =>
    Effect.gen(function* () {
      const client = yield* receivedUnder(
        [],
        "logs",
        (chain) => {
          chain.mine(1, [transfer(1, 2, 3, 4), transfer(9, 2, 3, 4)])
          chain.reorg(1, { logs: [transfer(1, 2, 3, 5)] })
        },
        { address: addressOf(1) },
      )
      assert.deepStrictEqual(
        client.received.map(({ data, removed }) => [Number(data), removed]),
        [
          [4, false],
          [4, true],
          [5, false],
        ],
      )
    }),
  )

  it.live("sends pending transactions, and nothing once unsubscribed", () =>
    Effect.gen(function* () {
      const chain = new SimulatedChain()
      const node = yield* simulatedNode(chain)
      const client = yield* connect(node.wsUrl)
      const { result: hashes } = yield* client.call("eth_subscribe", "newPendingTransactions")
      yield* client.call("eth_subscribe", "newPendingTransactions", true)
      const { hash } = chain.pool.add({ from: addressOf(1), to: addressOf(2) })
      assert.strictEqual((yield* client.call("eth_unsubscribe", hashes)).result, true)
      chain.pool.add({ from: addressOf(1), to: addressOf(3) })
      yield* client.call("eth_chainId")
      const full = client.received.slice(1).map(({ to, nonce, blockHash }) => [to, nonce, blockHash])
      assert.strictEqual(client.received[0], hash)
      assert.deepStrictEqual(full, [
        [addressOf(2), "0x0", null],
        [addressOf(3), "0x1", null],
      ])
      assert.match((yield* client.call("eth_subscribe", "syncing")).error.message, /no "syncing" subscription/)
    }),
  )

  const three = (chain: SimulatedChain) => void chain.mine(1).mine(1).mine(1)
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<NodeFault>, ReadonlyArray<number>]> = [
    ["is silent", [sockets.silentSockets()], []],
    ["sends twice", [sockets.repeatingSockets()], [6, 6, 7, 7, 8, 8]],
    ["sends in another order", [sockets.disorderlySockets()], [7, 6]],
    ["is late", [sockets.lateSockets(60_000)], []],
    ["sends in another order, and that twice", [sockets.repeatingSockets(), sockets.disorderlySockets()], [7, 7, 6, 6]],
    ["is behind and tells a head again", [staysBehind(2)], [5, 6]],
    ["stands still", [standsStill()], []],
  ]
  for (const [name, faults, expected] of cases)
    it.live(`${name} when it shall`, () =>
      Effect.map(receivedUnder(faults, "newHeads", three), (client) =>
        assert.deepStrictEqual(numbers(client), expected),
      ),
    )

  it.live("forgets removals or repeats them, drops sockets, and takes none", () =>
    Effect.gen(function* () {
      const fork = (chain: SimulatedChain) => void chain.mine(1, valued).reorg(1, { logs: [] })
      const removals = ({ received }: Client) => received.filter(({ removed }) => removed).length
      assert.strictEqual(removals(yield* receivedUnder([sockets.forgottenRemovals()], "logs", fork)), 0)
      assert.strictEqual(removals(yield* receivedUnder([sockets.repeatedRemovals()], "logs", fork)), 2)
      const dropped = yield* receivedUnder([sockets.droppedSockets()], "newHeads", three)
      yield* Effect.callback<void>((resume) => {
        if (dropped.isOpen) dropped.socket.once("close", () => resume(Effect.void))
        else resume(Effect.void)
      })
      assert.deepStrictEqual(dropped.received, [])
      const node = yield* simulatedNode(new SimulatedChain())
      node.misbehave(sockets.refusesSockets())
      assert.isFalse((yield* connect(node.wsUrl)).isOpen)
      node.faults.clear()
      node.misbehave(sockets.hangingSockets())
      const isAnswered = yield* Effect.timeoutOption(connect(node.wsUrl), 200)
      assert.isTrue(Option.isNone(isAnswered))
    }),
  )
})
