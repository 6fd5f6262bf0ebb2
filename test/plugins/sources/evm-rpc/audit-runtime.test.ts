import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HostSink } from "../../../../core/index.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { temporaryFolder } from "../../../support/process.ts"
import { CREATED, created, FACTORY } from "../../../support/factory.ts"
import { resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { omit, three } from "./omitting.ts"

const monitor = (id: string, address: unknown = addressOf(1)) => ({
  id,
  network: "net",
  selector: { kind: "event", event: TRANSFER, address },
  sinks: ["mine"],
})

/** A runtime over a database file, whose sink keeps what stands of what it was told. */
const setUp = Effect.fnUntraced(function* (monitors: ReadonlyArray<ReturnType<typeof monitor>>) {
  const folder = yield* temporaryFolder
  const chain = new SimulatedChain()
  const [node, other] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
  const told: Array<string> = []
  const values = new Map<string, string>()
  const deliver: HostSink["deliver"] = (event) =>
    Effect.sync(() => {
      if (event.type === "match") {
        const value = `${event.monitor}:${(event.event["args"] as { readonly value: string }).value}`
        values.set(event.id, value)
        told.push(`+${value}`)
      } else if (event.type === "retracted") told.push(`-${values.get(event.match_id)}`)
    })
  const start = startRuntime({
    path: join(folder, "rows.db"),
    plugins: [evmRpc],
    resources: {
      networks: [
        {
          id: "net",
          module: "evm-rpc",
          config: {
            chain_id: 1,
            urls: [node.url, other.url],
            confirmations: 0,
            start: 1,
            poll_interval_ms: 20,
            max_block_range: 40,
            audit: "receipts",
          },
        },
      ],
      monitors,
      sinks: [{ id: "mine", deliver }],
    },
  })
  const receipts = () => node.count("eth_getBlockReceipts") + other.count("eth_getBlockReceipts")
  return { chain, node, other, told, start, receipts }
})

const valuesOf = (from: number, to: number, id = "all") =>
  Array.from({ length: to - from + 1 }, (_, i) => three(from + i).map((_, j) => `+${id}:${(from + i) * 10 + j}`)).flat()

describe("logs that nodes left out", () => {
  it.live("are delivered once, by the past and near the head, through forks and restarts", () =>
    Effect.gen(function* () {
      const { chain, node, other, told, start, receipts } = yield* setUp([monitor("all")])
      chain.mine(200, three)
      for (const one of [node, other]) omit(one, 20, 150, 195, 203, 206)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* start
          yield* waitForCheckpoint(runtime, "net", 200)
          yield* waitUntil("the past is complete", () => told.length === 600)
          chain.mine(6, three)
          yield* waitUntil("the new blocks are complete", () => told.length === 617)
          // A monitor that comes later hears of nothing before its first batch.
          yield* resourcesOf(runtime).putMonitor(monitor("late"))
          chain.mine(1, three)
          yield* waitUntil("it hears of the new block", () => told.includes("+late:2072"))
        }),
      )
      // The audit has not come to block 206 yet.
      const known = valuesOf(1, 207).filter((one) => one !== "+all:2061")
      assert.sameMembers(told, [...known, ...valuesOf(207, 207, "late")])

      omit(node, 209)
      omit(other, 209)
      const before = receipts()
      chain.mine(3, three)
      const gone = told.length
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* start
          yield* waitForCheckpoint(runtime, "net", 210)
          chain.mine(3, three)
          yield* waitUntil("the last blocks of before are compared again", () => receipts() >= before + 60)
          yield* waitUntil("what was left out is found", () =>
            ["+all:2061", "+all:2091", "+late:2091"].every((one) => told.includes(one)),
          )
          chain.reorg(6, { length: 7, logs: three })
          yield* waitUntil("the fork is told", () => told.includes("-all:2091") && told.includes("+all:2142"))
          chain.mine(4, three)
          yield* waitUntil("what was left out of the fork is found", () =>
            ["all", "late"].every((id) => told.filter((one) => one === `+${id}:2091`).length === 2),
          )
          yield* waitForCheckpoint(runtime, "net", 218)
          yield* waitUntil("all is told", () => told.includes("+late:2182"))
        }),
      )
      const later = told.slice(gone).filter((one) => one !== "+all:2061")
      assert.strictEqual(later.length, told.length - gone - 1)
      for (const id of ["all", "late"]) {
        const expected = [...valuesOf(208, 213, id), ...valuesOf(208, 218, id)]
        assert.sameMembers(
          later.filter((one) => one.startsWith(`+${id}:`)),
          expected,
        )
        assert.sameMembers(
          later.filter((one) => one.startsWith(`-${id}:`)),
          valuesOf(208, 213, id).map((one) => `-${one.slice(1)}`),
        )
      }
    }),
  )

  it.live("tell of a contract of a factory: that is known from then on, also if nothing was read before the end", () =>
    Effect.gen(function* () {
      const factory = { address: FACTORY, event: CREATED, param: "pool" }
      const { chain, node, other, told, start } = yield* setUp([monitor("made", { factory })])
      const moved = (value: number) => transfer(20, 1, 2, value)
      chain
        .mine(19)
        .mine(1, [transfer(99, 1, 2, 1), created(20)])
        .mine(9)
        .mine(1, [moved(30)])
        .mine(170)
      let isHeld = true
      for (const one of [node, other]) {
        omit(one, 20)
        const omits = one.fault
        one.fault = (method, params) =>
          isHeld && method === "eth_getBlockReceipts" ? { result: null } : omits(method, params)
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* start
          yield* waitForCheckpoint(runtime, "net", 200)
          isHeld = false
          yield* waitUntil("what it did is told", () => told.length === 1)
        }),
      )
      chain.mine(1, [moved(201)])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* start
          yield* waitUntil("what it does then is told", () => told.length === 2)
          assert.deepStrictEqual(told, ["+made:30", "+made:201"])
        }),
      )
    }),
  )
})
