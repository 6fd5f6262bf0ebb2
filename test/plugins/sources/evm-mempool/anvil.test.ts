import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { encodeFunctionData, getAddress, type Hex, parseAbi } from "viem"
import type { Refused } from "../../../../core/index.ts"
import { ACCOUNT, type Anvil, anvil } from "../../../support/anvil.ts"
import { resourcesOf } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { Told, watchMempool } from "./support.ts"

const SPENDER = "0x00000000000000000000000000000000000000aa"
const TRANSFER = "function transfer(address to, uint256 value)"

const transfer = (value: bigint): Hex => encodeFunctionData({ abi: parseAbi([TRANSFER]), args: [SPENDER, value] })

const pend = (node: Anvil, data: Hex | undefined, value: bigint) =>
  Effect.promise(() =>
    node.client.sendTransaction({
      account: ACCOUNT,
      to: SPENDER,
      value,
      gas: 100_000n,
      maxFeePerGas: 9_000_000_000n,
      maxPriorityFeePerGas: 1_000_000_000n,
      ...(data === undefined ? {} : { data }),
    }),
  )

describe("the mempool of a real node", () => {
  it.live("is told once, each transaction while it waits: as what it calls, what it carries and what it pays", () =>
    Effect.gen(function* () {
      const node = yield* anvil(["--no-mining"])
      const told = new Told()
      const runtime = yield* watchMempool({
        urls: [node.url],
        chainId: 31337,
        selectors: {
          calls: { kind: "call", address: SPENDER, function: TRANSFER },
          rich: { kind: "transaction", from: ACCOUNT, min_value: "1000" },
        },
        told,
      })
      yield* waitUntil(
        "it runs",
        Effect.map(Effect.orDie(resourcesOf(runtime).networks), ([one]) => one!.head !== null),
      )
      const call = yield* pend(node, transfer(7n), 5n)
      const plain = yield* pend(node, undefined, 2000n)
      yield* pend(node, undefined, 1n)
      yield* waitUntil("both are told", () => told.events.length === 2)

      const pays = { gas: "100000", max_fee_per_gas: "9000000000", max_priority_fee_per_gas: "1000000000" }
      const parties = { from: getAddress(ACCOUNT), to: getAddress(SPENDER) }
      const [first, second] = told.events
      assert.deepInclude(first!, {
        ...parties,
        kind: "call",
        name: "transfer",
        signature: "transfer(address,uint256)",
        value: "5",
        args: { to: getAddress(SPENDER), value: "7" },
      })
      assert.deepInclude(first!["transaction"], { ...pays, hash: call, nonce: 0 })
      assert.deepInclude(second!, { ...parties, kind: "transaction", value: "2000", input: "0x" })
      assert.deepInclude(second!["transaction"], { ...pays, hash: plain, nonce: 1 })

      // What is mined is not told again, and what comes next has the next number.
      yield* Effect.promise(() => node.mine(1))
      const last = yield* pend(node, transfer(8n), 0n)
      yield* waitUntil("the next is told", () => told.events.length === 3)
      assert.strictEqual(told.hashes.at(-1), last)
      const [network] = yield* resourcesOf(runtime).networks
      assert.deepInclude(network!.head!, { primary: 4 })
    }),
  )

  it.live("refuses gates, rewinds, tests, events and blocks, and says so in the plugins", () =>
    Effect.gen(function* () {
      const node = yield* anvil(["--no-mining"])
      const told = new Told()
      const selector = { kind: "call", function: TRANSFER }
      const runtime = yield* watchMempool({ urls: [node.url], chainId: 31337, selectors: { calls: selector }, told })
      const { putMonitor, rewindNetwork, testMonitor, plugins, networks } = resourcesOf(runtime)
      yield* waitUntil(
        "it runs",
        Effect.map(Effect.orDie(networks), ([one]) => one!.checkpoint !== null),
      )
      const monitor = { id: "more", network: "pool", selector, sinks: ["told"] }

      const gate = { type: "max_once", windowMs: 1000 }
      const refused = (yield* Effect.flip(putMonitor({ ...monitor, gate }))) as Refused
      assert.deepStrictEqual(refused.problems, [
        {
          path: "gate",
          message: "cannot be used here: a gate goes by event time, and the events of evm-mempool have none",
        },
      ])
      const factory = { address: SPENDER, event: "event Made(address pool)", param: "pool" }
      const made = (yield* Effect.flip(
        putMonitor({ ...monitor, selector: { ...selector, address: { factory } } }),
      )) as Refused
      assert.match(made.problems[0]!.message, /reads no logs, so it does not know what a factory makes/)
      for (const kind of ["event", "block"]) {
        const { _tag } = yield* Effect.flip(putMonitor({ ...monitor, selector: { kind } }))
        assert.strictEqual(_tag, "Refused")
      }
      const rewind = yield* Effect.flip(rewindNetwork("pool", { primary: 0, secondary: 0 }))
      assert.include(rewind.message, "evm-mempool cannot go back")
      const test = yield* Effect.flip(testMonitor(monitor, 1))
      assert.include(test.message, "evm-mempool cannot read the past")
      const [plugin] = yield* plugins
      assert.deepInclude(plugin!, { name: "evm-mempool", eventTime: false, resumable: false })
    }),
  )
})
