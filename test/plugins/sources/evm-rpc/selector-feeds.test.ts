import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { endOf } from "../../../../core/model/cursor.ts"
import type { SourceEvent } from "../../../../core/plugin/source.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { TRANSFER, transfer } from "../../../../server/devnet/simulated/transfer.ts"
import { callEach, callSelector, live, places, scanned } from "./selector-support.ts"
import { drive, idOf, makeSource, quick, until, watching } from "./driver.ts"

describe("the ids of matches", () => {
  live(
    "are frozen for every kind",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(3, [transfer(1, 2, 3, 4)], callEach)
      const node = yield* simulatedNode(chain)
      const selectors: ReadonlyArray<Selector> = [
        { kind: "event", event: TRANSFER },
        callSelector,
        { kind: "transaction" },
        { kind: "block" },
      ]
      const ids: Array<string> = []
      for (const selector of selectors) {
        const [event] = yield* scanned(node, selector, 2, 2)
        ids.push(`${event!.cursor.secondary} ${idOf(selector, event!)}`)
      }
      assert.deepStrictEqual(ids, [
        "1048576 2d99d697e7d82708555c9ff8a9d1178e4e9feca74e94f194b23326eae6e3ce68",
        "1 cb91c63c4150638a68a5fc2480d9d3a1a741673d4b3c994254e4df565c85aa65",
        "1 906f7345b9117a8ffbebe785f72afdf0ba108853350449ca21c72dae360aa7e1",
        "0 5fca9419f5f53cdcb32ddfb7108977a5b16aff6e76f419273919e1fe8897badd",
      ])
    }),
  )
})

describe("several kinds on one network", () => {
  const selectors: ReadonlyArray<Selector> = [
    { kind: "block" },
    { kind: "transaction" },
    callSelector,
    { kind: "event", event: TRANSFER },
  ]
  const all = {
    version: 1,
    interests: selectors.map((selector) => ({ id: selector.kind, selector })),
  }
  const mined = () => new SimulatedChain().mine(120, () => [transfer(1, 2, 3, 4)], callEach)

  live(
    "come in the order of their places, live as scanned, also behind a cursor inside a block",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url, max_block_range: 40 })
      const { driven } = yield* drive(source, { interests: all })
      yield* until("the head is reached", () => driven.upTo === 120)
      chain.mine(3, () => [transfer(1, 2, 3, 4)], callEach)
      yield* until("new blocks are seen", () => driven.upTo === 123)
      const told = driven.events.map(({ cursor, interests }) => `${cursor.primary}:${cursor.secondary} ${interests}`)
      const block = (number: number) => [
        `${number}:0 block`,
        `${number}:1 transaction`,
        `${number}:1 call`,
        `${number}:${2 ** 20} event`,
      ]
      assert.deepStrictEqual(told, ["0:0 block", ...Array.from({ length: 123 }, (_, i) => block(i + 1)).flat()])
      assert.deepStrictEqual(driven.troubles, [])

      const second = yield* drive(source, {
        cursor: { primary: 60, secondary: 1 },
        anchors: driven.anchors.filter(({ primary }) => primary <= 60),
        interests: all,
      })
      yield* until("the head is reached again", () => second.driven.upTo === 123)
      assert.deepStrictEqual(places(second.driven.events).slice(0, 2), [`60:${2 ** 20}`, "61:0"])
    }),
  )

  live(
    "are taken back and read again when the chain reorganises",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const first = yield* drive(source, { interests: all })
      yield* until("the head is reached", () => first.driven.upTo === 120)
      const last = (events: ReadonlyArray<SourceEvent>) =>
        events
          .filter(({ cursor }) => cursor.primary === 120)
          .map((event) =>
            idOf(
              selectors.find(({ kind }) => kind === event.interests[0])!,
              event,
            ),
          )
      chain.reorg(4, { logs: "same", transactions: callEach })
      yield* until("the run ends", () => first.driven.exit !== undefined)
      const from = endOf(116)
      assert.deepStrictEqual((first.driven.outcome as any).from, from)
      const anchors = first.driven.anchors.filter(({ primary }) => primary <= 116)
      const second = yield* drive(source, { cursor: from, anchors, interests: all })
      yield* until("the head is reached again", () => second.driven.upTo === 120)
      assert.strictEqual(second.driven.events.length, 16)
      const ids = [...last(first.driven.events), ...last(second.driven.events)]
      assert.strictEqual(new Set(ids).size, 8)
    }),
  )

  live(
    "take effect with the interests, without what they need being fetched before",
    Effect.gen(function* () {
      const chain = mined()
      const node = yield* simulatedNode(chain)
      const source = yield* makeSource({ ...quick, url: node.url })
      const { driven } = yield* drive(source, { interests: watching({ kind: "event", event: TRANSFER }) })
      yield* until("the head is reached", () => driven.upTo === 120)
      assert.strictEqual(node.count("eth_getBlockByHash"), 0)
      driven.interests = { ...all, version: 2 }
      chain.mine(1, [], callEach)
      yield* until("a new block is seen", () => driven.upTo === 121)
      assert.deepStrictEqual(places(driven.events).slice(-3), ["121:0", "121:1", "121:1"])
    }),
  )
})
