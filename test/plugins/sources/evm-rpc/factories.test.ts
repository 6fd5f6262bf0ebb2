import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endOf, startOf } from "../../../../core/model/cursor.ts"
import { decodeConfig } from "../../../../core/plugin/decode-config.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { SimulatedChain } from "../../../../server/devnet/simulated/chain.ts"
import { CREATED, created, FACTORY } from "../../../support/factory.ts"
import { simulatedNode } from "../../../../server/devnet/simulated/node.ts"
import { addressOf, TRANSFER } from "../../../../server/devnet/simulated/transfer.ts"
import { drive, idOf, jsonOf, positions, scan, until, watching } from "./driver.ts"
import { childrenOf, factory, moved, ofChildren, recordsOf, resumed, source, spy } from "./factory-support.ts"
import { live } from "./selector-support.ts"

describe("selectors with a factory", () => {
  const problems = (selector: unknown) => {
    const decoded = decodeConfig(evmRpc.selector, selector)
    if (decoded._tag === "Failure") return decoded.failure
    const described = evmRpc.describe(decoded.success)
    return "problems" in described ? described.problems : []
  }

  it("yield what those with addresses yield", () => {
    assert.deepStrictEqual(
      evmRpc.describe(ofChildren()),
      evmRpc.describe({ kind: "event", event: TRANSFER, address: FACTORY }),
    )
    assert.deepStrictEqual(problems(ofChildren({ args: { token: addressOf(1) }, start: 5 })), [])
  })

  it("say everything that is wrong with it, and where", () => {
    assert.deepStrictEqual(
      problems(ofChildren({ address: "0x12", param: "spacing", args: { token: "x", pool: "y" } })),
      [
        {
          path: "address.factory.address",
          message: "'0x12' is no address: expected 0x and 40 hex digits, in one case or with the right checksum",
        },
        {
          path: "address.factory.args.pool",
          message:
            "'pool' is not indexed in PoolCreated, so nodes cannot choose by it; compare args.pool in the predicate",
        },
        { path: "address.factory.args.token", message: '"x" is no address: expected an address' },
        {
          path: "address.factory.param",
          message: "'spacing' is of type int24 and no address; its arguments of type address are token, pool",
        },
      ],
    )
    const of = (more: object) => problems(ofChildren(more)).map(({ path, message }) => `${path}: ${message}`)
    assert.deepStrictEqual(of({ param: "pair" }), [
      "address.factory.param: PoolCreated has no argument 'pair'; its arguments of type address are token, pool",
    ])
    assert.match(
      of({ event: "PoolCreated(address)" })[0]!,
      /^address\.factory\.event: 'PoolCreated\(address\)' does not/,
    )
    assert.match(of({ event: "event Made(address pool) anonymous" })[0]!, /^address\.factory\.event: Made is anonymous/)
    assert.match(of({ start: -1 })[0]!, /^address\.factory\.start: expected the number of a block/)
    assert.match(of({ from: 1 })[0]!, /^address\.factory\.from: /)
    const anonymous = problems(ofChildren({}, "event Note(bytes32 what) anonymous"))
    assert.match(anonymous[0]!.message, /Note is anonymous: once a factory has made many contracts/)
    assert.match(problems({ kind: "event", event: TRANSFER, address: {} })[0]!.path, /^address/)
    const call = (address: unknown) => problems({ kind: "call", function: "function f()", address })
    assert.deepStrictEqual(call({ factory }), [])
    assert.strictEqual(call({ factory: { ...factory, param: "pair" } })[0]!.path, "address.factory.param")
  })
})

describe("the contracts that a factory made", () => {
  /** Block 3 makes 20 between its own logs, block 5 makes 21 and is used by both, and so on; 99 is of nobody. */
  const logs = (number: number) => {
    if (number === 3) return [moved(20), created(20), moved(20), moved(99)]
    if (number === 5) return [moved(20), created(21), moved(21), created(22, { factory: addressOf(0xbad) })]
    return number > 5 ? [moved(21), moved(22), moved(20)] : [moved(21), moved(20)]
  }
  const expected = (upTo: number) => [
    "3:2",
    "4:1",
    "5:0",
    "5:2",
    ...Array.from({ length: upTo - 5 }, (_, i) => [`${6 + i}:0`, `${6 + i}:2`]).flat(),
  ]

  for (const [where, blocks] of [
    ["in one range far from the head", 150],
    ["near the head", 30],
  ] as const)
    live(
      `are watched from the log on that tells of them, ${where}, live as scanned`,
      Effect.gen(function* () {
        const node = yield* simulatedNode(new SimulatedChain().mine(blocks, logs))
        const evm = yield* source(node)
        const { driven } = yield* drive(evm, { interests: watching(ofChildren()) })
        yield* until("the head is reached", () => driven.upTo === blocks)
        assert.deepStrictEqual(positions(driven.events), expected(blocks))
        assert.deepStrictEqual(childrenOf(recordsOf(driven)), { "20": "3:1", "21": "5:1" })
        const [first] = driven.events
        const plain: Selector = { kind: "event", event: TRANSFER, address: addressOf(20) }
        assert.deepStrictEqual(jsonOf(ofChildren(), first!), jsonOf(plain, first!))
        assert.strictEqual(idOf(ofChildren(), first!), idOf(plain, first!))
        assert.deepStrictEqual(driven.troubles, [])
        const scanned = yield* scan(evm, 0, blocks, watching(ofChildren()))
        assert.deepStrictEqual(positions(scanned.flatMap(({ events }) => events)), expected(blocks))
        const some = yield* scan(evm, 8, 9, watching(ofChildren()))
        assert.deepStrictEqual(positions(some.flatMap(({ events }) => events)), ["8:0", "8:2", "9:0", "9:2"])
      }),
    )

  live(
    "cost a second request where one is made, and none else; ranges that were asked for ahead miss nothing",
    Effect.gen(function* () {
      const make = (number: number) => [
        ...(number % 100 === 50 && number < 500 ? [created(1000 + number)] : []),
        ...(number % 10 === 9 ? [moved(1050), moved(1450)] : []),
      ]
      const chain = new SimulatedChain().mine(1100, make)
      const node = yield* simulatedNode(chain)
      const calls = spy(node)
      const evm = yield* source(node, { max_block_range: 20 })
      const { driven } = yield* drive(evm, { interests: watching(ofChildren()) })
      yield* until("the head is reached", () => driven.upTo === 1100)
      const first = Array.from({ length: 110 }, (_, i) => 9 + 10 * i)
      assert.deepStrictEqual(
        positions(driven.events),
        first.flatMap((block) => [...(block > 50 ? [`${block}:0`] : []), ...(block > 450 ? [`${block}:1`] : [])]),
      )
      // 52 ranges of 20 blocks, of which 5 tell of a contract; what was asked for ahead of these is asked for once more at most.
      const ranges = calls.filter(({ method, filter }) => method === "eth_getLogs" && filter.fromBlock !== undefined)
      assert.isAtLeast(ranges.length, 52 + 5)
      assert.isAtMost(ranges.length, 52 * 2)
      const before = node.count("eth_getLogs")
      chain.mine(5, [moved(1050)])
      yield* until("new blocks are read", () => driven.upTo === 1105)
      assert.isAtMost(node.count("eth_getLogs") - before, 5)
      assert.strictEqual(positions(driven.events).at(-1), "1105:0")
      chain.mine(1, [created(5), moved(5)])
      yield* until("a new one is read", () => driven.upTo === 1106)
      assert.strictEqual(positions(driven.events).at(-1), "1106:1")
    }),
  )

  live(
    "are thousands: nodes are asked by topic, each log finds its own, and monitors share what is known",
    Effect.gen(function* () {
      const total = 2000
      const made = (number: number) =>
        number <= 20 ? Array.from({ length: 100 }, (_, i) => created(10_000 + (number - 1) * 100 + i)) : []
      const chain = new SimulatedChain().mine(20, made).mine(100, [moved(10_000), moved(11_999), moved(12_000)])
      const node = yield* simulatedNode(chain)
      const calls = spy(node)
      const evm = yield* source(node, { max_block_range: 10 })
      const interests = {
        version: 1,
        interests: [
          { id: "a", selector: ofChildren() },
          { id: "b", selector: ofChildren({ param: "p", event: CREATED.replace("pool", "p") }) },
          { id: "c", selector: ofChildren({ args: { token: addressOf(8) } }) },
        ],
      }
      const { driven } = yield* drive(evm, { interests })
      yield* until("the head is reached", () => driven.upTo === 120)
      assert.lengthOf(driven.events, 200)
      for (const { interests } of driven.events) assert.deepStrictEqual(interests, ["a", "b"])
      assert.lengthOf(Object.keys(childrenOf(recordsOf(driven))), total)
      const last = calls.findLast(({ method }) => method === "eth_getLogs")!.filter
      assert.isTrue(last.address === undefined || last.address.length === 1, JSON.stringify(last).slice(0, 200))
      assert.isTrue(calls.every(({ filter }) => (filter?.address?.length ?? 0) <= 500))
      assert.isTrue(calls.every(({ filter, method }) => method !== "eth_getLogs" || filter.topics?.[0].length > 0))
      const again = yield* drive(evm, { interests, ...resumed(driven, endOf(60)) })
      yield* until("the head is reached again", () => again.driven.upTo === 120)
      assert.lengthOf(again.driven.events, 120)
      assert.deepStrictEqual(recordsOf(again.driven), [])
    }),
  )

  live(
    "that do not decode are skipped, and the others found",
    Effect.gen(function* () {
      const node = yield* simulatedNode(
        new SimulatedChain().mine(1, [{ ...created(20), data: "0x12" }, created(0), created(21), moved(21)]),
      )
      const { driven } = yield* drive(yield* source(node), { interests: watching(ofChildren()) })
      yield* until("the head is reached", () => driven.upTo === 1)
      assert.deepStrictEqual(positions(driven.events), ["1:3"])
      assert.deepStrictEqual(driven.troubles, [])
    }),
  )
})

describe("a contract whose logs could not be read at once", () => {
  for (const [where, blocks] of [
    ["near the head", 1],
    ["far from it", 100],
  ] as const)
    live(
      `is found again with the batch that is handed over, ${where}`,
      Effect.gen(function* () {
        const chain = new SimulatedChain().mine(1, [created(20), moved(20)]).mine(blocks)
        const node = yield* simulatedNode(chain)
        let failures = 0
        node.fault = (method, [filter]) =>
          method === "eth_getLogs" && filter.address.includes(addressOf(20)) && failures++ === 0
            ? { error: { code: -32603, message: "out of order" } }
            : undefined
        const { driven } = yield* drive(yield* source(node), { interests: watching(ofChildren()) })
        yield* until("the head is reached", () => driven.upTo === blocks + 1)
        assert.isAbove(failures, 1)
        assert.deepStrictEqual(positions(driven.events), ["1:1"])
        assert.deepStrictEqual(childrenOf(recordsOf(driven)), { "20": "1:0" })
      }),
    )
})

describe("what is known of a factory", () => {
  const quiet = Effect.gen(function* () {
    const chain = new SimulatedChain()
      .mine(10)
      .mine(1, [created(20)])
      .mine(200, [moved(20), moved(21)])
    const node = yield* simulatedNode(chain)
    return { chain, node, evm: yield* source(node, { max_block_range: 50 }) }
  })

  live(
    "outlives a restart, also one inside a block, and what was made meanwhile is found",
    Effect.gen(function* () {
      const { chain, node, evm } = yield* quiet
      const first = yield* drive(evm, { interests: watching(ofChildren()) })
      yield* until("the head is reached", () => first.driven.upTo === 211)
      yield* first.stop
      chain
        .mine(1, [moved(20), created(21), moved(21), created(22), moved(22)])
        .mine(1, [moved(20), moved(21), moved(22)])
      const calls = spy(node)
      const second = yield* drive(evm, { interests: watching(ofChildren()), ...resumed(first.driven) })
      yield* until("new blocks are read", () => second.driven.upTo === 213)
      assert.deepStrictEqual(positions(second.driven.events), ["212:0", "212:2", "212:4", "213:0", "213:1", "213:2"])
      assert.isTrue(
        calls.every(({ filter }) => filter?.fromBlock === undefined),
        "nothing was read again",
      )
      assert.isTrue(second.driven.batches.every(({ pending }) => (pending?.size ?? 0) === 0))
      yield* second.stop

      // The pipeline minted the first part of block 212 only.
      const inside = { primary: 212, secondary: 2 ** 20 + 2 }
      const records = [...recordsOf(first.driven), ...recordsOf(second.driven)].filter(
        ({ cursor }) => cursor.primary < 212 || (cursor.primary === 212 && cursor.secondary <= inside.secondary),
      )
      const third = yield* drive(evm, {
        interests: watching(ofChildren()),
        cursor: inside,
        anchors: [],
        records,
      })
      yield* until("the rest is read", () => third.driven.upTo === 213)
      assert.deepStrictEqual(positions(third.driven.events), ["212:4", "213:0", "213:1", "213:2"])
      assert.deepStrictEqual(childrenOf(recordsOf(third.driven)), { "22": "212:3" })
    }),
  )

  live(
    "is looked up in the past for a monitor that is added later, while the others go on",
    Effect.gen(function* () {
      const { chain, node, evm } = yield* quiet
      const other = { id: "other", selector: { kind: "event", event: TRANSFER, address: addressOf(21) } as const }
      const { driven } = yield* drive(evm, { interests: { version: 1, interests: [other] } })
      yield* until("the head is reached", () => driven.upTo === 211)
      let isPruned = true
      node.fault = (method, [filter]) =>
        isPruned && method === "eth_getLogs" && filter.fromBlock !== undefined
          ? { error: { code: -32000, message: "the history is not available" } }
          : undefined
      driven.interests = { version: 2, interests: [other, { id: "watch", selector: ofChildren() }] }
      for (let block = 212; block < 220; block++) {
        chain.mine(1, [moved(20), moved(21)])
        yield* until("a new block is read", () => driven.upTo === block)
      }
      const { pending, interests } = driven.batches.at(-1)!
      assert.strictEqual(interests, 2)
      assert.match(pending!.get("watch")!, /looks for the contracts that the factory 0x0+fac made in blocks 0 to 2\d\d/)
      assert.deepStrictEqual([...pending!.keys()], ["watch"])
      assert.isTrue(driven.events.every(({ interests }) => interests[0] === "other"))
      isPruned = false
      yield* until("the past is known", () => driven.batches.at(-1)!.pending!.size === 0)
      assert.strictEqual(childrenOf(recordsOf(driven))["20"], "11:0")
      chain.mine(1, [moved(20), moved(21)])
      yield* until("a block is read with it", () => driven.upTo === 220)
      const last = driven.events.slice(-2).map(({ interests }) => interests)
      assert.deepStrictEqual(last, [["watch"], ["other"]])
    }),
  )

  live(
    "is looked up before a network begins, if the factory is older; a restart goes on where it was",
    Effect.gen(function* () {
      const { node, evm } = yield* quiet
      const interests = watching(ofChildren({ start: 5 }))
      const start = startOf(190)
      let failing = true
      node.fault = (method, [filter]) =>
        failing && method === "eth_getLogs" && Number(filter.fromBlock) > 100
          ? { error: { code: -32000, message: "the history is not available" } }
          : undefined
      const first = yield* drive(evm, { interests, cursor: start, start })
      yield* until("the first part is read", () => (recordsOf(first.driven).at(-1)?.cursor.primary ?? 0) >= 54)
      yield* until("it is told", () => first.driven.trouble?.includes("the history is not available") === true)
      assert.match(first.driven.trouble!, /made in blocks 5 to 189, read up to 104: .*the history is not available/)
      assert.isTrue(first.driven.batches.every(({ upTo, events }) => upTo.primary === 189 && events.length === 0))
      yield* first.stop
      failing = false
      const calls = spy(node)
      const second = yield* drive(evm, { interests, start, ...resumed(first.driven, start) })
      yield* until("the head is reached", () => second.driven.upTo === 211)
      assert.deepStrictEqual(positions(second.driven.events).slice(0, 2), ["190:0", "191:0"])
      assert.lengthOf(second.driven.events, 22)
      assert.isAtLeast(
        Math.min(...calls.flatMap(({ filter }) => (filter?.fromBlock === undefined ? [] : [Number(filter.fromBlock)]))),
        105,
      )
      assert.isNull(second.driven.trouble)
    }),
  )

  live(
    "is read anew where it was asked for ahead before the factory was followed",
    Effect.gen(function* () {
      const chain = new SimulatedChain()
        .mine(645, [moved(21)])
        .mine(1, [created(20)])
        .mine(200, [moved(20)])
      const evm = yield* source(yield* simulatedNode(chain), { max_block_range: 10 })
      const other = { id: "other", selector: { kind: "event", event: TRANSFER, address: addressOf(21) } as const }
      const { driven } = yield* drive(evm, { interests: { version: 1, interests: [other] } })
      yield* until("the first round is under way", () => driven.upTo >= 100)
      const late = { id: "watch", selector: ofChildren({ start: 643 }) }
      driven.interests = { version: 2, interests: [other, late] }
      yield* until("the head is reached", () => driven.upTo === 846)
      assert.strictEqual(driven.events.filter(({ interests }) => interests[0] === "watch").length, 200)
    }),
  )

  live(
    "is forgotten when no monitor names it, and looked up anew when one does again",
    Effect.gen(function* () {
      const { chain, evm } = yield* quiet
      const { driven } = yield* drive(evm, { interests: watching(ofChildren()) })
      yield* until("the head is reached", () => driven.upTo === 211)
      assert.lengthOf(recordsOf(driven), 2)
      driven.interests = watching({ kind: "event", event: TRANSFER, address: addressOf(21) }, 2)
      chain.mine(1, [created(23)])
      yield* until("a block is read without it", () => driven.upTo === 212)
      assert.deepStrictEqual(recordsOf(driven), [])
      driven.interests = watching(ofChildren(), 3)
      yield* until(
        "its past is known again",
        () => driven.batches.at(-1)!.interests === 3 && recordsOf(driven).length === 3,
      )
      assert.deepStrictEqual(childrenOf(recordsOf(driven)), { "20": "11:0", "23": "212:0" })
      chain.mine(1, [moved(20), moved(23)])
      yield* until("a block is read with it", () => driven.upTo === 213)
      assert.deepStrictEqual(positions(driven.events).slice(-2), ["213:0", "213:1"])
    }),
  )

  live(
    "is forgotten bit by bit where it is much, and what is left of it misleads nobody",
    Effect.gen(function* () {
      const made = (number: number) => Array.from({ length: 100 }, (_, i) => created(10_000 + number * 100 + i))
      const chain = new SimulatedChain().mine(15, made)
      const evm = yield* source(yield* simulatedNode(chain))
      const { driven } = yield* drive(evm, { interests: watching(ofChildren()) })
      yield* until("the head is reached", () => driven.upTo === 15)
      assert.lengthOf(recordsOf(driven), 1501)
      driven.interests = watching({ kind: "event", event: TRANSFER, address: addressOf(21) }, 2)
      chain.mine(1, [created(23)])
      yield* until("a block is read without it", () => driven.upTo === 16)
      const left = recordsOf(driven)
      assert.isAbove(left.length, 100)
      assert.isTrue(left.every(({ value }) => value.startsWith("0x")))
      driven.interests = watching(ofChildren(), 3)
      yield* until("its past is known again", () => recordsOf(driven).some(({ value }) => value === "followed"))
      assert.lengthOf(Object.keys(childrenOf(recordsOf(driven))), 1501)
      chain.mine(1, [moved(23), moved(10_100), moved(11_599)])
      yield* until("a block is read with it", () => driven.upTo === 17)
      assert.deepStrictEqual(positions(driven.events), ["17:0", "17:1", "17:2"])
    }),
  )
})
