import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import type { LateBatch } from "../../../../core/plugin/source.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { CREATED, created, FACTORY } from "../../../support/factory.ts"
import {
  drive,
  makeSource,
  outside,
  positions,
  quick,
  secretsFrom,
  transferInterests,
  until,
  watching,
} from "./driver.ts"
import { omit, three } from "./omitting.ts"

const services = Layer.merge(outside, Layer.succeed(Secrets, secretsFrom({})))

const live = (name: string, test: Effect.Effect<void, unknown, any>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test as Effect.Effect<void, unknown, never>), services))

const audited = { ...quick, audit: "receipts" }

const found = (late: ReadonlyArray<LateBatch>) => positions(late.flatMap(({ events }) => events))

describe("the audit of receipts", () => {
  live(
    "hands over late what a node left out, far from the head and near it, once",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, three)
      const node = yield* simulatedNode(chain)
      node.blockTimestamps = false
      omit(node, 7, 150, 295, 303)
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 50 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 300)
      chain.mine(8, three)
      yield* until("all are found", () => found(driven.late).length === 4)
      assert.deepStrictEqual(found(driven.late), ["7:1", "150:1", "295:1", "303:1"])
      for (const { events, resume, interests } of driven.late) {
        const [event] = events
        const block = chain.at(event!.cursor.primary)!
        assert.deepStrictEqual(resume, [{ primary: block.number, hash: block.hash }])
        assert.strictEqual(event!.time, block.timestamp * 1000)
        assert.strictEqual((event!.fields()["args"] as any).value, BigInt(block.number * 10 + 1))
        assert.strictEqual(interests, 1)
      }
      chain.mine(4, three)
      yield* until("the audit goes on", () => node.count("eth_getBlockReceipts") >= 309 && driven.upTo === 312)
      assert.strictEqual(driven.late.length, 4)
      assert.strictEqual(driven.events.length, 3 * 312 - 4)
    }),
  )

  live(
    "asks another provider than the one that answered, and leaves that one aside",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, three)
      const [lazy, good] = [yield* simulatedNode(chain), yield* simulatedNode(chain)]
      omit(lazy, 12)
      const source = yield* makeSource({ ...audited, urls: [lazy.url, good.url] })
      const { driven } = yield* drive(source)
      yield* until("it is found", () => found(driven.late).length === 1)
      assert.deepStrictEqual(found(driven.late), ["12:1"])
      assert.strictEqual(lazy.count("eth_getBlockReceipts"), 0)
      chain.mine(1, three)
      yield* until("the other one is asked", () => good.count("eth_getLogs") > 0)
    }),
  )

  live(
    "finds a contract of a factory whose creation a node left out, with what it logged since",
    Effect.gen(function* () {
      const chain = new SimulatedChain()
        .mine(99, () => [transfer(20, 1, 2, 1)])
        .mine(1, () => [created(21), created(20), transfer(20, 1, 2, 1)])
        .mine(110, () => [transfer(20, 1, 2, 1)])
      const node = yield* simulatedNode(chain)
      omit(node, 100)
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 50 })
      const factory = { address: FACTORY, event: CREATED, param: "pool" }
      const { driven } = yield* drive(source, {
        interests: watching({ kind: "event", event: TRANSFER, address: { factory } }),
      })
      yield* until("the audit is at the head", () => found(driven.late).length + driven.events.length >= 108)
      chain.mine(4, () => [transfer(20, 1, 2, 1)])
      yield* until("the audit goes on", () => found(driven.late).length + driven.events.length === 115)
      const all = [...found(driven.late), ...positions(driven.events)]
      assert.deepStrictEqual(new Set(all), new Set(["100:2", ...Array.from({ length: 114 }, (_, i) => `${101 + i}:0`)]))
      assert.lengthOf(all, 115)
      for (const handed of [driven.batches, driven.late]) {
        const children = handed.flatMap(({ records = [] }) => records.map(({ value }) => value))
        assert.isTrue(children.includes(addressOf(20)), "it is recorded with what comes first")
      }
    }),
  )

  live(
    "finds that a factory told of a contract earlier than was known, and what it logged from then on",
    Effect.gen(function* () {
      const chain = new SimulatedChain()
        .mine(49, () => [transfer(20, 1, 2, 1)])
        .mine(1, () => [created(21), created(20), transfer(20, 1, 2, 1)])
        .mine(29, () => [transfer(20, 1, 2, 1)])
        .mine(1, () => [created(20), transfer(20, 1, 2, 1)])
        .mine(120, () => [transfer(20, 1, 2, 1)])
      const node = yield* simulatedNode(chain)
      omit(node, 50)
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 50 })
      const factory = { address: FACTORY, event: CREATED, param: "pool" }
      const { driven } = yield* drive(source, {
        interests: watching({ kind: "event", event: TRANSFER, address: { factory } }),
      })
      yield* until("all are found", () => driven.events.length === 121 && found(driven.late).length === 30)
      assert.deepStrictEqual(found(driven.late), ["50:2", ...Array.from({ length: 29 }, (_, i) => `${51 + i}:0`)])
      chain.mine(4, () => [transfer(20, 1, 2, 1)])
      yield* until("the new place is recorded", () => driven.upTo === 204)
      const places = driven.batches.flatMap(({ records = [] }) =>
        records.flatMap(({ value, cursor }) => (value === addressOf(20) ? [cursor.primary] : [])),
      )
      assert.strictEqual(places.at(-1), 50)
    }),
  )

  live(
    "waits at a provider that has other blocks, and finds nothing in blocks that are gone",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(20, three)
      const node = yield* simulatedNode(chain)
      omit(node, 18, 19)
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 50 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 20)
      chain.reorg(4, { length: 8, logs: three })
      yield* until("the fork is found", () => driven.outcome !== undefined)
      assert.strictEqual(driven.outcome!._tag, "Invalidated")
      assert.deepStrictEqual(found(driven.late), [])
      omit(node, 18)
      const again = yield* drive(source, {
        cursor: endOf(16),
        anchors: driven.anchors.filter(({ primary }) => primary <= 16),
      })
      yield* until("it is found on the new fork", () => found(again.driven.late).some((one) => one === "18:1"))
      const late = again.driven.late.find(({ events }) => events.some(({ cursor }) => cursor.primary === 18))!
      assert.deepStrictEqual(late.resume, [{ primary: 18, hash: chain.at(18)!.hash }])
    }),
  )

  live(
    "compares what an earlier run handed over last once more, by what is wanted now",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200, three)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...audited, url: node.url })
      const anchors = Array.from({ length: 190 }, (_, i) => 190 - i).map((primary) => ({
        primary,
        hash: chain.at(primary)!.hash,
      }))
      const { driven } = yield* drive(source, { cursor: endOf(190), anchors, interests: transferInterests(5) })
      yield* until("it is read anew", () => found(driven.late).length >= 3 * 64)
      assert.strictEqual(found(driven.late)[0], "127:0")
      assert.strictEqual(found(driven.late).length, 3 * 64)
      assert.isTrue(driven.late.every(({ interests }) => interests === 5))
    }),
  )

  live(
    "compares more of that where it was read in ranges, of which not all hashes are recorded",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(300, three)
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...audited, url: node.url })
      const anchors = Array.from({ length: 96 }, (_, i) => 290 - 2 * i).map((primary) => ({
        primary,
        hash: chain.at(primary)!.hash,
      }))
      const { driven } = yield* drive(source, { cursor: endOf(290), anchors })
      yield* until("it is read anew", () => found(driven.late).length >= 3 * 189)
      assert.strictEqual(found(driven.late)[0], "102:0")
      assert.strictEqual(found(driven.late).length, 3 * 189)
    }),
  )

  live(
    "is off where no node has the method, which is told once and stops nothing",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200, three)
      const node = yield* simulatedNode(chain)
      node.fault = (method) =>
        method === "eth_getBlockReceipts" ? { error: { code: -32601, message: "method not found" } } : undefined
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 10 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 200)
      yield* until("it is told", () => driven.troubles.length > 0)
      chain.mine(5, three)
      yield* until("it goes on", () => driven.upTo === 205)
      assert.strictEqual(driven.troubles.length, 1)
      assert.match(driven.trouble!, /the audit is off: no node answers eth_getBlockReceipts/)
      assert.isAtMost(node.count("eth_getBlockReceipts"), 32)
    }),
  )

  live(
    "asks a node that has answered for receipts again after it refused once",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200, three)
      const node = yield* simulatedNode(chain)
      omit(node, 208)
      const omitting = node.fault
      let refusals = 0
      node.fault = (method, params) =>
        method === "eth_getBlockReceipts" && chain.head.number > 200 && refusals++ < 1
          ? { error: { code: -32000, message: "receipts of the block cannot be derived" } }
          : omitting(method, params)
      const source = yield* makeSource({ ...audited, url: node.url })
      const { driven } = yield* drive(source)
      yield* until("receipts came", () => driven.upTo === 200 && node.count("eth_getBlockReceipts") >= 190)
      chain.mine(20, three)
      yield* until("it is found", () => found(driven.late).length === 1)
      assert.deepStrictEqual(found(driven.late), ["208:1"])
      assert.strictEqual(driven.trouble, null)
    }),
  )

  live(
    "that cannot go on holds up nothing, and goes on when it can",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(200, three)
      const node = yield* simulatedNode(chain)
      omit(node, 198)
      const omitting = node.fault
      let isDown = true
      node.fault = (method, params) =>
        method === "eth_getBlockReceipts" && isDown
          ? { error: { code: -32000, message: "no backend is currently healthy to serve traffic" } }
          : omitting(method, params)
      const source = yield* makeSource({ ...audited, url: node.url, max_block_range: 10 })
      const { driven } = yield* drive(source)
      yield* until("the head is reached", () => driven.upTo === 200)
      isDown = false
      chain.mine(5, three)
      yield* until("it is found", () => found(driven.late).length === 1)
      assert.deepStrictEqual(found(driven.late), ["198:1"])
    }),
  )
})
