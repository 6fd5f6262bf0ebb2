import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf } from "../../../../server/devnet/simulated/transfer.ts"
import { created } from "../../../support/factory.ts"
import { drive, idOf, jsonOf, scan, until, watching } from "./driver.ts"
import { childrenOf, factory, moved, ofChildren, recordsOf, resumed, source } from "./factory-support.ts"
import { callData, live, places, TRANSFER_CALL } from "./selector-support.ts"

/** Calls of the contracts that the factory made. */
const callsOfChildren: Selector = { kind: "call", function: TRANSFER_CALL, address: { factory } }

/** A call of the contract of this number. */
const call = (contract: number, status: "success" | "reverted" = "success") => ({
  to: addressOf(contract),
  input: callData(addressOf(2), contract),
  status,
})

describe("calls of the contracts that a factory made", () => {
  /** Transaction 1 of block 3 makes 20, transaction 0 of block 5 makes 21; log `i` of a block is of transaction `i`. */
  const logs = (number: number) => {
    if (number === 3) return [moved(99), created(20)]
    return number === 5 ? [created(21)] : []
  }
  const transactions = (number: number) => {
    if (number === 3) return [call(20), call(20), call(20, "reverted")]
    if (number === 4) return [call(21), call(20)]
    return number === 5 ? [call(21), call(20)] : [call(21), call(22), call(20)]
  }
  const expected = (upTo: number) => [
    "3:2",
    "3:3",
    "4:2",
    "5:1",
    "5:2",
    ...Array.from({ length: upTo - 5 }, (_, i) => [`${6 + i}:1`, `${6 + i}:3`]).flat(),
  ]

  for (const [where, blocks] of [
    ["far from the head", 150],
    ["near the head", 30],
  ] as const)
    live(
      `are watched from the transaction on that tells of them, ${where}, live as scanned`,
      Effect.gen(function* () {
        const node = yield* simulatedNode(new SimulatedChain().mine(blocks, logs, transactions))
        const evm = yield* source(node)
        const { driven } = yield* drive(evm, { interests: watching(callsOfChildren) })
        yield* until("the head is reached", () => driven.upTo === blocks)
        assert.deepStrictEqual(places(driven.events), expected(blocks))
        assert.deepStrictEqual(childrenOf(recordsOf(driven)), { "20": "3:1", "21": "5:0" })
        assert.deepStrictEqual(driven.troubles, [])
        const plain: Selector = { kind: "call", function: TRANSFER_CALL, address: addressOf(20) }
        const reverted = driven.events[1]!
        assert.strictEqual(jsonOf(callsOfChildren, reverted).status, "reverted")
        assert.deepStrictEqual(jsonOf(callsOfChildren, reverted), jsonOf(plain, reverted))
        assert.strictEqual(idOf(callsOfChildren, reverted), idOf(plain, reverted))
        const scanned = yield* scan(evm, 0, blocks, watching(callsOfChildren))
        assert.deepStrictEqual(places(scanned.flatMap(({ events }) => events)), expected(blocks))
        const some = yield* scan(evm, 8, 9, watching(callsOfChildren))
        assert.deepStrictEqual(places(some.flatMap(({ events }) => events)), ["8:1", "8:3", "9:1", "9:3"])
      }),
    )

  live(
    "cost the receipts of those alone, and none is missed in blocks that were asked for ahead",
    Effect.gen(function* () {
      const make = (number: number) => (number % 100 === 50 ? [created(1000 + number)] : [])
      const calling = (number: number) => [
        call(1),
        call(2),
        ...(number % 10 === 9 ? [call(1050 + 100 * (number % 4))] : []),
      ]
      const made = (number: number) => number % 10 === 9 && number > 50 + 100 * (number % 4)
      const chain = new SimulatedChain().mine(600, make, calling)
      const node = yield* simulatedNode(chain)
      const { driven } = yield* drive(yield* source(node), { interests: watching(callsOfChildren) })
      yield* until("the head is reached", () => driven.upTo === 600)
      const wanted = Array.from({ length: 600 }, (_, number) => number).filter(made)
      assert.deepStrictEqual(
        places(driven.events),
        wanted.map((number) => `${number}:3`),
      )
      assert.strictEqual(node.count("eth_getTransactionReceipt"), wanted.length)
      assert.strictEqual(node.count("eth_getBlockReceipts"), 0)
    }),
  )

  live(
    "are told beside the events of the same contracts, also after a restart, and one inside a block",
    Effect.gen(function* () {
      const chain = new SimulatedChain().mine(10, [created(20)], [call(20)]).mine(100)
      const node = yield* simulatedNode(chain)
      const evm = yield* source(node)
      const interests = {
        version: 1,
        interests: [
          { id: "calls", selector: callsOfChildren },
          { id: "events", selector: ofChildren() },
        ],
      }
      const first = yield* drive(evm, { interests })
      yield* until("the head is reached", () => first.driven.upTo === 110)
      yield* first.stop
      chain
        .mine(1, [moved(20), created(21), moved(21)], [call(20), call(21), call(21)])
        .mine(1, [moved(21)], [call(20), call(21)])
      const second = yield* drive(evm, { interests, ...resumed(first.driven) })
      yield* until("new blocks are read", () => second.driven.upTo === 112)
      const log = (index: number) => 2 ** 20 + index
      const rest = ["111:2", "111:3", `111:${log(0)}`, `111:${log(2)}`, "112:1", "112:2", `112:${log(0)}`]
      assert.deepStrictEqual(places(second.driven.events), ["111:1", ...rest])
      yield* second.stop

      // The pipeline minted the first call of block 111 only.
      const inside = { primary: 111, secondary: 1 }
      const third = yield* drive(evm, {
        interests,
        cursor: inside,
        anchors: [],
        records: recordsOf(first.driven),
      })
      yield* until("the rest is read", () => third.driven.upTo === 112)
      assert.deepStrictEqual(places(third.driven.events), rest)
    }),
  )
})
