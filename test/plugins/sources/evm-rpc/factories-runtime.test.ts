import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SinkEvent } from "../../../../core/index.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { temporaryFolder } from "../../../support/process.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { CREATED, created, FACTORY } from "../../../support/factory.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { callData, TRANSFER_CALL } from "./selector-support.ts"
import { addressOf, TRANSFER, TRANSFER_TOPIC, transfer } from "../../../../server/devnet/simulated/transfer.ts"

const OTHER_FACTORY = addressOf(0xfab)

const selectorOf = (factory: string) => ({
  kind: "event",
  event: TRANSFER,
  address: { factory: { address: factory, event: CREATED, param: "pool" } },
})

const moved = (child: number) => transfer(child, 1, 2, child)

const call = (child: number) => ({ to: addressOf(child), input: callData(addressOf(1), child) })

/** The calls that the chain holds now of the contracts that the factory made. */
const canonicalCalls = (chain: SimulatedChain): ReadonlyArray<string> => {
  const children = new Set<string | null>()
  return chain.fromGenesis.flatMap(({ hash, logs, transactions }) =>
    transactions.flatMap(({ to }, index) => {
      // Log `i` of a block is of its transaction `i`.
      const log = logs[index]
      if (log?.address === FACTORY) children.add(addressOf(Number(`0x${log.data.slice(-64)}`)))
      return children.has(to) ? [`${hash} ${index}`] : []
    }),
  )
}

/** What the chain holds now of the contracts that a factory made, behind a block. */
const canonical = (chain: SimulatedChain, factory: string, behind = -1): ReadonlyArray<string> => {
  const children = new Set<number>()
  return chain.canonicalLogs().flatMap(({ block, hash, index, log: { address, topics, data } }) => {
    if (address === factory) children.add(Number(`0x${data.slice(-64)}`))
    const isOfChild = topics[0] === TRANSFER_TOPIC && children.has(Number(address))
    return isOfChild && block > behind ? [`${hash} ${index}`] : []
  })
}

/** A receiver that applies matches and retractions in the order in which they come. */
const consumer = () => {
  const held = new Map<string, { readonly monitor: string; readonly place: string }>()
  let retracted = 0
  return {
    deliver: (event: SinkEvent) =>
      Effect.sync(() => {
        if (event.type === "match") {
          const { block, log, transaction } = event.event as any
          held.set(event.id, { monitor: event.monitor, place: `${block.hash} ${(log ?? transaction).index}` })
        } else if (event.type === "retracted") {
          retracted++
          held.delete(event.match_id)
        }
      }),
    retracted: () => retracted,
    of: (monitor: string) => [...held.values()].flatMap((one) => (one.monitor === monitor ? [one.place] : [])),
  }
}

describe("contracts of a factory in a runtime on a file", () => {
  it.live(
    "come and go with the chain: over restarts, forks that take them back or give them back, and for later monitors",
    () =>
      Effect.gen(function* () {
        const chain = new SimulatedChain()
          .mine(9, [moved(20)])
          .mine(1, [created(20), moved(20)])
          .mine(90, [moved(20)])
        const node = yield* simulatedNode(chain)
        const path = `${yield* temporaryFolder}/rows.db`
        const { deliver, of, retracted } = consumer()
        const config = { chain_id: 1, url: node.url, confirmations: 0, start: 0, poll_interval_ms: 20 }
        const monitor = (id: string, factory = FACTORY) => ({
          id,
          network: "net",
          selector: selectorOf(factory),
          sinks: ["mine"],
        })
        const start = startRuntime({
          path,
          plugins: [evmRpc],
          resources: { networks: [{ id: "net", module: "evm-rpc", config }], sinks: [{ id: "mine", deliver }] },
        })
        const holds = (what: string, id = "first", factory = FACTORY, behind = -1) =>
          waitUntil(`${id} holds what is canonical: ${what}`, () => {
            const [now, is] = [of(id).toSorted(), canonical(chain, factory, behind).toSorted()]
            return now.length === is.length && now.every((place, i) => place === is[i])
          })

        yield* Effect.scoped(
          Effect.gen(function* () {
            const runtime = yield* start
            yield* resourcesOf(runtime).putMonitor(monitor("first"))
            yield* holds("from the start")
            assert.lengthOf(of("first"), 91)

            chain.mine(1, [moved(21), created(21), moved(21)]).mine(2, [moved(20), moved(21)])
            yield* holds("with a new one")
            const gone = chain.reorg(3, { logs: () => [moved(20), moved(21)] })
            yield* holds("without it, when the fork lacks its creation")
            assert.strictEqual(retracted(), 5)
            chain.mine(1, [moved(21)])
            const other = chain.restore(gone)
            chain.mine(2, [moved(21)])
            yield* holds("with it again, when the first fork wins back")
            assert.lengthOf(other, 4)
          }),
        )

        chain.mine(1, [created(22), moved(22)]).mine(70, [moved(21), moved(22)])
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* start
            yield* holds("with what was made while nobody looked")
          }),
        )

        chain.reorg(72, { logs: () => [moved(21), moved(22)] })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const runtime = yield* start
            yield* holds("without what a fork took back while nobody looked")
            const effective = (id: string) =>
              Effect.map(
                resourcesOf(runtime).monitors,
                (monitors) => monitors.find((one) => one.id === id)!.effectiveFrom?.primary ?? null,
              )
            chain.mine(1, [created(30, { factory: OTHER_FACTORY }), moved(30)])
            yield* holds("still")
            yield* resourcesOf(runtime).putMonitor(monitor("second", OTHER_FACTORY))
            yield* resourcesOf(runtime).putMonitor(monitor("third"))
            yield* waitUntil(
              "both take effect",
              Effect.map(Effect.all([effective("second"), effective("third")]), (all) => !all.includes(null)).pipe(
                Effect.orDie,
              ),
            )
            const [second, third] = [(yield* effective("second"))!, (yield* effective("third"))!]
            chain.mine(2, [moved(20), moved(30)])
            yield* holds("behind where it took effect", "second", OTHER_FACTORY, second)
            yield* holds("behind where it took effect", "third", FACTORY, third)
            assert.lengthOf(of("second"), 2)
            assert.lengthOf(of("third"), 2)
            yield* holds("all the same")
          }),
        )
      }).pipe(Effect.scoped),
    60_000,
  )

  it.live(
    "are called: that comes and goes with their creation, over forks and a restart",
    () =>
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(1, [created(20)], [call(20)]).mine(90, [], [call(21), call(20)])
        const node = yield* simulatedNode(chain)
        const path = `${yield* temporaryFolder}/rows.db`
        const { deliver, of, retracted } = consumer()
        const start = startRuntime({
          path,
          plugins: [evmRpc],
          resources: {
            networks: [
              {
                id: "net",
                module: "evm-rpc",
                config: { chain_id: 1, url: node.url, confirmations: 0, start: 0, poll_interval_ms: 20 },
              },
            ],
            monitors: [
              {
                id: "calls",
                network: "net",
                selector: { kind: "call", function: TRANSFER_CALL, address: selectorOf(FACTORY).address },
                sinks: ["mine"],
              },
            ],
            sinks: [{ id: "mine", deliver }],
          },
        })
        const holds = (what: string) =>
          waitUntil(`what is canonical is held: ${what}`, () => {
            const [now, is] = [of("calls").toSorted(), canonicalCalls(chain).toSorted()]
            return now.length === is.length && now.every((place, i) => place === is[i])
          })

        const gone = yield* Effect.scoped(
          Effect.gen(function* () {
            yield* start
            yield* holds("from the start")
            assert.lengthOf(of("calls"), 91)
            chain.mine(1, [moved(20), created(21)], [call(21), call(21)]).mine(2, [], [call(21), call(20)])
            yield* holds("with a new one")
            const gone = chain.reorg(3, { transactions: [call(21), call(20)] })
            yield* holds("without it, when the fork lacks its creation")
            assert.strictEqual(retracted(), 5)
            return gone
          }),
        )

        chain.restore(gone)
        chain.mine(2, [], [call(21)])
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* start
            yield* holds("with it again, when the first fork won back while nobody looked")
          }),
        )
      }).pipe(Effect.scoped),
    60_000,
  )
})
