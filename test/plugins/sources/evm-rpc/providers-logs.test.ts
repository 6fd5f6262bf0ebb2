import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import type { NodeFault } from "../../../../server/devnet/simulated/fault.ts"
import * as chains from "../../../../server/devnet/simulated/faults/chain.ts"
import * as limits from "../../../../server/devnet/simulated/faults/limits.ts"
import * as logs from "../../../../server/devnet/simulated/faults/logs.ts"
import * as shapes from "../../../../server/devnet/simulated/faults/shapes.ts"
import * as transport from "../../../../server/devnet/simulated/faults/transport.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, makeSource, outside, positions, quick, scan, secretsFrom, until } from "./driver.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const valued = (value: number) => [transfer(1, 2, 3, value)]
const all = (to: number) => Array.from({ length: to }, (_, i) => `${i + 1}:0`)

const at = (token: number) => ({
  id: `token ${token}`,
  selector: { kind: "event" as const, event: TRANSFER, address: addressOf(token) },
})

/** Follows a chain of 5 blocks with one log each at nodes with these faults, to its end. */
const followed = Effect.fnUntraced(function* (nodes: ReadonlyArray<ReadonlyArray<NodeFault>>, blocks = 5) {
  const chain = new SimulatedChain().mine(blocks, valued)
  const urls: Array<string> = []
  for (const faults of nodes) {
    const node = yield* simulatedNode(chain)
    node.misbehave(...faults)
    urls.push(node.url)
  }
  const source = yield* makeSource({ ...quick, urls })
  const { driven } = yield* drive(source)
  yield* until("the head is reached", () => driven.upTo === blocks)
  return { driven, chain }
})

describe("logs that are missing near the head", () => {
  live(
    "are asked of every provider before they are given up",
    Effect.gen(function* () {
      const { driven } = yield* followed([[logs.emptyLogs()], [logs.omitsLogs(1, 1)], []])
      assert.deepStrictEqual(positions(driven.events), all(5))
    }),
  )

  live(
    "are found where the bloom shows them, also beside some that came",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(40, (number) => [transfer(1, 2, 3, number), transfer(2, 2, 3, number)])
      const [lazy, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      lazy.misbehave(logs.omitsLogs(7, 0.4))
      const source = yield* makeSource({ ...quick, urls: [lazy.url, good.url] })
      const { driven } = yield* drive(source, { interests: { version: 1, interests: [at(1), at(2)] } })
      yield* until("the head is reached", () => driven.upTo === 40)
      assert.strictEqual(driven.events.length, 80)
    }),
  )

  live(
    "that are announced by a bloom and are not there are given up after a few tries",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20)
      const node = yield* simulatedNode(chain)
      node.misbehave(logs.fullBlooms())
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 20)
      assert.strictEqual(node.count("eth_getLogs"), 3 * 21)
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )
})

describe("logs that come in another way", () => {
  const harmless: ReadonlyArray<NodeFault> = [
    logs.logsWithoutTransaction("null"),
    logs.logsWithoutTransaction("zero"),
    logs.logsWithoutTransaction("left out"),
    logs.duplicateLogs(),
    logs.logsInDisorder(),
    logs.zeroBlooms(),
    shapes.leadingZeros(),
    shapes.missingFields(),
    shapes.unknownTypes(),
    shapes.upperCase(),
    transport.noBatches(),
    transport.lacksMethod("eth_getBlockReceipts"),
    chains.headJumps(3),
    chains.headFlickers(2),
    chains.unknownTags(),
  ]
  for (const fault of harmless)
    live(
      `from the only node, which ${fault.says}, are handed over once`,
      Effect.gen(function* () {
        // 99 is a head also where only every third block is one
        const { driven, chain } = yield* followed([[fault]], 99)
        assert.deepStrictEqual(positions(driven.events), all(99))
        for (const event of driven.events) {
          const { transaction, block, args } = event.fields() as any
          const lacksIt = fault.name === "logs-without-transaction" || fault.name === "missing-fields"
          assert.strictEqual(transaction === null, lacksIt, fault.name)
          assert.strictEqual(block.hash, chain.at(block.number)!.hash)
          assert.strictEqual(args.value, BigInt(block.number))
        }
      }),
    )
})

describe("answers that are refused", () => {
  const refused: ReadonlyArray<NodeFault> = [
    logs.contradictingLogs(),
    logs.removedLogs(),
    logs.logsOfOtherBlock(),
    logs.logsOutside(),
    chains.twoMachines(3),
    chains.unknownHashes(),
    chains.pruned(1000),
    chains.pruned(1000, "an error"),
    chains.inventedHead(3),
    limits.quotaError(),
    limits.overloaded(),
    limits.tooManyRequests(),
    limits.tooManyRequests({ retryAfter: "1" }),
    limits.tooLarge(10, "json"),
    limits.tooLarge(10, "html"),
    transport.html(),
    transport.empty(),
    transport.badGateway(),
    transport.drops(),
    transport.cutBodies(),
    transport.errorInBatch(),
    transport.missingInBatch(),
    transport.resultAndError(),
    transport.wrongIds(),
    transport.nullResults(),
    transport.internalErrors(),
    transport.lacksMethod("eth_getLogs"),
  ]
  for (const fault of refused)
    live(
      `of a node that ${fault.says} (${fault.name}) are asked of another one`,
      Effect.gen(function* () {
        const { driven } = yield* followed([[fault], []])
        assert.deepStrictEqual(positions(driven.events), all(5))
      }),
    )
})

describe("a range", () => {
  for (const message of limits.LIMIT_MESSAGES) {
    const says = message.error({ from: 1, to: 100, max: 9, fits: 9 }).message
    live(
      `that is refused by "${says}" is asked for in smaller ones, strictly`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(60, valued)
        const node = yield* simulatedNode(chain)
        const spans: Array<number> = []
        node.fault = (method, [filter]) => {
          if (method === "eth_getLogs" && filter.fromBlock !== undefined)
            spans.push(Number(filter.toBlock) - Number(filter.fromBlock) + 1)
          return undefined
        }
        node.misbehave(message.kind === "too many" ? limits.resultLimit(9, message) : limits.rangeLimit(9, message))
        const source = yield* makeSource({ ...quick, url: node.url })
        chain.mine(64)
        const batches = yield* scan(source, 1, 60)
        assert.deepStrictEqual(positions(batches.flatMap(({ events }) => events)), all(60))
        // Ranges that were under way at the same time are refused together.
        assert.isAtMost(spans.filter((blocks) => blocks > 9).length, 12, spans.join())
      }),
    )
  }

  live(
    "whose refusal suggests the range itself is halved",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(124, valued)
      const node = yield* simulatedNode(chain)
      node.misbehave(limits.uselessHint(9))
      const source = yield* makeSource({ ...quick, url: node.url })
      assert.deepStrictEqual(positions((yield* scan(source, 1, 60)).flatMap(({ events }) => events)), all(60))
    }),
  )

  live(
    "of one block that a node refuses is asked of another one",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(124, valued)
      const [mean, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      mean.misbehave(limits.rangeLimit(0, limits.LIMIT_MESSAGES[8]))
      const source = yield* makeSource({ ...quick, urls: [mean.url, good.url] })
      assert.deepStrictEqual(positions((yield* scan(source, 1, 60)).flatMap(({ events }) => events)), all(60))
    }),
  )
})
