import { assert, describe, it } from "vitest"
import { readLogs, transactionOf } from "../../../../plugins/sources/evm-rpc/logs.ts"

const hash = (digit: string): string => `0x${digit.repeat(64)}`

const raw = (over: Readonly<Record<string, unknown>> = {}) => ({
  address: "0x00000000000000000000000000000000000000AB",
  topics: [hash("1"), hash("2")],
  data: "0x0102",
  blockNumber: "0x5",
  blockHash: hash("a"),
  transactionHash: hash("c"),
  transactionIndex: "0x0",
  logIndex: "0x0",
  removed: false,
  ...over,
})

const without = (key: string) => Object.fromEntries(Object.entries(raw()).filter(([name]) => name !== key))

const read = (...logs: ReadonlyArray<unknown>) => readLogs(logs, 1, 10)

describe("reading logs", () => {
  it("yields canonical values", () => {
    const [log] = read(raw({ blockTimestamp: "0x00064" })).logs
    assert.deepStrictEqual(log, {
      block: 5,
      blockHash: hash("a"),
      timestamp: 100,
      index: 0,
      address: "0x00000000000000000000000000000000000000ab",
      topics: [hash("1"), hash("2")],
      data: "0x0102",
      transactionHash: hash("c"),
      transactionIndex: "0x0",
    })
    assert.deepStrictEqual(transactionOf(log!), { hash: hash("c"), index: 0 })
  })

  it("sorts, and drops identical repeats", () => {
    const { logs, duplicates } = read(
      raw({ logIndex: "0x2" }),
      raw({ blockNumber: "0x4", blockHash: hash("b") }),
      raw({ logIndex: "0x02" }),
      raw(),
    )
    assert.deepStrictEqual(
      logs.map(({ block, index }) => [block, index]),
      [
        [4, 0],
        [5, 0],
        [5, 2],
      ],
    )
    assert.strictEqual(duplicates, 1)
  })

  it("needs only what identifies a log", () => {
    for (const key of ["transactionHash", "transactionIndex", "removed"])
      assert.strictEqual(read(without(key)).logs.length, 1)
    for (const over of [
      { transactionHash: null },
      { transactionHash: hash("0") },
      { transactionHash: hash("g") },
      { transactionIndex: null },
    ])
      assert.strictEqual(transactionOf(read(raw(over)).logs[0]!), null)
    assert.strictEqual(read(raw({ blockTimestamp: "0x0" })).logs[0]!.timestamp, null)
    assert.deepStrictEqual(read(raw({ topics: [], data: "0x" })).logs[0]!.topics, [])
  })

  const malformed: ReadonlyArray<readonly [string, unknown]> = [
    ["no object", 1],
    ["null", null],
    ...["address", "topics", "data", "logIndex", "blockNumber", "blockHash"].map(
      (key) => [`a log without ${key}`, without(key)] as const,
    ),
    ["an address that is too short", raw({ address: "0xab" })],
    ["five topics", raw({ topics: Array.from({ length: 5 }, () => hash("1")) })],
    ["a topic that is too short", raw({ topics: ["0x12"] })],
    ["a topic that is no hex string", raw({ topics: ["1".repeat(66)] })],
    ["an odd number of digits", raw({ data: "0x123" })],
    ["data of half a byte", raw({ data: "0x1" })],
    ["a number as index", raw({ logIndex: 1 })],
    ["an empty index", raw({ logIndex: "0x" })],
    ["a block outside of what was asked for", raw({ blockNumber: "0xb" })],
    ["a removed log", raw({ removed: true })],
  ]
  for (const [name, log] of malformed)
    it(`refuses the whole answer for ${name}`, () => {
      assert.throws(() => read(raw({ blockNumber: "0x1" }), log))
    })

  it("refuses answers that contradict themselves", () => {
    assert.throws(() => read(raw(), raw({ data: "0x01" })), /two different logs have the index 0 in block 5/)
    assert.throws(() => read(raw(), raw({ logIndex: "0x1", blockHash: hash("b") })), /name two different blocks/)
  })
})
