import { assert, describe, it } from "vitest"
import { encodeEventTopics, parseAbiItem } from "viem"
import { Bloom, bloomBits } from "../../../../plugins/sources/evm-rpc/bloom.ts"
import type { Log } from "../../../../plugins/sources/evm-rpc/logs.ts"
import { Routing } from "../../../../plugins/sources/evm-rpc/routing.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import type { Transaction } from "../../../../plugins/sources/evm-rpc/transactions.ts"
import { bloomOf } from "../../../../server/devnet/simulated/bloom.ts"
import { addressOf, TRANSFER, TRANSFER_TOPIC } from "../../../../server/devnet/simulated/transfer.ts"

const APPROVAL = "event Approval(address indexed owner, address indexed spender, uint256 value)"
const NOTE = "event Note(bytes4 indexed what, address indexed who, bytes data) anonymous"

interface Watch {
  readonly id: string
  readonly selector: Selector
}

const watch = (
  id: string,
  event: string | ReadonlyArray<string>,
  more: object | string | ReadonlyArray<string> = {},
): Watch => ({
  id,
  selector: {
    kind: "event",
    event,
    ...(typeof more === "string" || Array.isArray(more) ? { address: more } : more),
  } as Selector,
})

const routing = (...interests: ReadonlyArray<Watch>) => Routing.of({ version: 1, interests })

const filters = (...interests: ReadonlyArray<Watch>) => routing(...interests).logs.filters

const topicOf = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`

const logOf = (address: string, topics: ReadonlyArray<string>, data = "0x"): Log => ({
  block: 1,
  blockHash: topicOf(1),
  timestamp: 1,
  index: 0,
  address,
  topics,
  data,
  transactionHash: null,
  transactionIndex: null,
})

const transferLog = (address: string, topics = 3) =>
  logOf(address, [TRANSFER_TOPIC, ...[1, 2, 3].map(topicOf)].slice(0, topics))

const idsOf = (routes: Routing, log: Log) =>
  routes.logs.routes(log.topics[0]?.toLowerCase(), log).map(({ interests }) => interests)

const interestsAt = (routes: Routing, address: string, topics = 3) => idsOf(routes, transferLog(address, topics))

describe("routing of logs", () => {
  it("joins interests of one event with the same names, so that a log is decoded once for all", () => {
    const routes = routing(
      watch("any", TRANSFER),
      watch("one", TRANSFER, addressOf(1)),
      watch("two", [APPROVAL, TRANSFER], [addressOf(1), addressOf(2)]),
    )
    assert.deepStrictEqual(interestsAt(routes, addressOf(1)), [["any", "one", "two"]])
    assert.deepStrictEqual(interestsAt(routes, addressOf(2)), [["any", "two"]])
    assert.deepStrictEqual(interestsAt(routes, addressOf(3)), [["any"]])
    assert.strictEqual(interestsAt(routes, addressOf(3))[0], interestsAt(routes, addressOf(4))[0])
  })

  it("keeps apart what has other names or indexes other arguments", () => {
    const routes = routing(
      watch("a", TRANSFER),
      watch("b", "event Transfer(address indexed src, address indexed dst, uint256 wad)"),
      watch("nft", "event Transfer(address indexed from, address indexed to, uint256 indexed id)"),
    )
    assert.deepStrictEqual(interestsAt(routes, addressOf(1)), [["a"], ["b"]])
    assert.deepStrictEqual(interestsAt(routes, addressOf(1), 4), [["nft"]])
    assert.deepStrictEqual(interestsAt(routes, addressOf(1), 2), [])
  })

  it("finds the interests of certain arguments by their values", () => {
    const routes = routing(
      watch("all", TRANSFER),
      watch("from 1", TRANSFER, { args: { from: addressOf(1) } }),
      watch("from 9", TRANSFER, { args: { from: addressOf(9) } }),
      watch("to 2 or 3", TRANSFER, { args: { to: [addressOf(2), addressOf(3)] } }),
      watch("from 1 to 2", TRANSFER, { args: { from: addressOf(1), to: addressOf(2) } }),
      watch("from 1 to 3", TRANSFER, { args: { from: addressOf(1), to: addressOf(3) } }),
      watch("there", TRANSFER, { args: { from: addressOf(1) }, address: addressOf(5) }),
    )
    const sorted = (address: string) => idsOf(routes, transferLog(address)).map((ids) => ids.toSorted())
    assert.deepStrictEqual(sorted(addressOf(4)), [["all", "from 1", "from 1 to 2", "to 2 or 3"]])
    assert.deepStrictEqual(sorted(addressOf(5)), [["all", "from 1", "from 1 to 2", "there", "to 2 or 3"]])
  })

  it("takes for an anonymous event what can be one, unless the same interest knows it by name", () => {
    const four = "event Known(bytes4 indexed what, address indexed who)"
    const at = addressOf(7)
    const routes = routing(
      watch("note", NOTE, at),
      watch("both", [NOTE, "event Other(uint256 indexed a)", four], at),
      watch("elsewhere", NOTE, addressOf(8)),
    )
    const what = `0xdeadbeef${"0".repeat(56)}`
    const data = `0x${topicOf(32).slice(2)}${topicOf(0).slice(2)}`
    assert.deepStrictEqual(idsOf(routes, logOf(at, [what, topicOf(5)], data)), [["note", "both"]])
    assert.deepStrictEqual(idsOf(routes, logOf(at, [topicOf(1), topicOf(5)], data)), [])
    assert.deepStrictEqual(idsOf(routes, logOf(at, [what, `0x${"1".repeat(64)}`], data)), [])
    assert.deepStrictEqual(idsOf(routes, logOf(at, [`0x${"g".repeat(64)}`, topicOf(5)], data)), [])
    assert.deepStrictEqual(idsOf(routes, logOf(at, [what], data)), [])
    assert.deepStrictEqual(idsOf(routes, logOf(at, [], data)), [])

    const small = routing(watch("small", "event Small(int8 indexed a) anonymous", at))
    assert.deepStrictEqual(idsOf(small, logOf(at, [`0x${"f".repeat(64)}`])), [["small"]])
    assert.deepStrictEqual(idsOf(small, logOf(at, [`0x${"g".repeat(64)}`])), [])

    const any = "event Any(bytes32 indexed a, bytes32 indexed b) anonymous"
    const other = "event Other(uint256 indexed a)"
    const [topic0] = encodeEventTopics({ abi: [parseAbiItem(other)] })
    const named = routing(watch("any", any, at), watch("knows", [any, other], at))
    assert.deepStrictEqual(idsOf(named, logOf(at, [topic0!, topicOf(1)])), [["knows"], ["any"]])
  })

  it("asks nodes for what interests of one kind need together", () => {
    const [both, ...more] = filters(watch("a", TRANSFER, addressOf(1)), watch("b", APPROVAL, addressOf(2)))
    assert.deepStrictEqual(both!.address, [addressOf(1), addressOf(2)])
    assert.deepStrictEqual(
      both!.topics.map((values) => values?.length),
      [2],
    )
    assert.strictEqual(more.length, 0)
    assert.deepStrictEqual(filters(), [])
    const many = Array.from({ length: 600 }, (_, i) => addressOf(i))
    assert.strictEqual(filters(watch("a", TRANSFER, many))[0]!.address, null)
  })

  it("asks apart for what would make the rest ask for more", () => {
    const asked = filters(
      watch("a", TRANSFER, addressOf(1)),
      watch("b", APPROVAL),
      watch("c", TRANSFER, { args: { to: addressOf(3) } }),
    )
    const [approval] = encodeEventTopics({ abi: [parseAbiItem(APPROVAL)] })
    assert.deepStrictEqual(asked, [
      { address: [addressOf(1)], topics: [[TRANSFER_TOPIC]] },
      { address: null, topics: [[approval!]] },
      { address: null, topics: [[TRANSFER_TOPIC], null, [topicOf(3)]] },
    ])
  })

  it("does not ask twice for what another filter lets through", () => {
    const asked = filters(
      watch("c", TRANSFER, { args: { to: addressOf(3) } }),
      watch("a", TRANSFER, addressOf(1)),
      watch("b", TRANSFER),
    )
    assert.deepStrictEqual(asked, [{ address: null, topics: [[TRANSFER_TOPIC]] }])
  })

  it("asks for everything of the address of an anonymous event, and in few calls whatever is watched", () => {
    assert.deepStrictEqual(filters(watch("n", NOTE, addressOf(1))), [{ address: [addressOf(1)], topics: [] }])
    assert.deepStrictEqual(filters(watch("n", NOTE, { address: addressOf(1), args: { who: addressOf(2) } })), [
      { address: [addressOf(1)], topics: [null, [topicOf(2)]] },
    ])
    const wild = ["from", "to"].flatMap((name) => [
      watch(`${name} any`, TRANSFER, { args: { [name]: addressOf(1) } }),
      watch(`${name} at`, TRANSFER, { args: { [name]: addressOf(2) }, address: addressOf(1) }),
    ])
    const asked = filters(...wild, watch("n", NOTE, addressOf(2)), watch("a", APPROVAL, addressOf(3)))
    assert.isAtMost(asked.length, 4)
    assert.isTrue(asked.some(({ address, topics }) => address === null && topics[0]?.length === 1))
  })

  it("tells from a bloom that logs are missing", () => {
    const bloom = bloomOf([addressOf(1), TRANSFER_TOPIC, topicOf(1)])
    const misses = (one: Watch | null, ...logs: ReadonlyArray<Log>) =>
      routing(...(one === null ? [] : [one])).logs.misses(bloom, logs)
    const came = transferLog(addressOf(1))
    assert.isTrue(misses(watch("a", TRANSFER)))
    assert.isFalse(misses(watch("a", TRANSFER), came))
    assert.isTrue(misses(watch("a", TRANSFER, addressOf(1))))
    assert.isFalse(misses(watch("a", TRANSFER, addressOf(1)), came))
    assert.isFalse(misses(watch("a", TRANSFER, addressOf(2))))
    assert.isFalse(misses(watch("a", APPROVAL)))
    assert.isFalse(misses(null))
    const from = (number: number) => watch("a", TRANSFER, { args: { from: addressOf(number) } })
    assert.isTrue(misses(from(1)))
    assert.isTrue(misses(from(1), logOf(addressOf(1), [TRANSFER_TOPIC, topicOf(7), topicOf(8)])))
    assert.isFalse(misses(from(1), came))
    assert.isFalse(misses(from(9)))
    const many = bloomOf([addressOf(1), addressOf(2), TRANSFER_TOPIC, topicOf(1), topicOf(5)])
    const partly = (one: Watch, ...logs: ReadonlyArray<Log>) => routing(one).logs.misses(many, logs)
    assert.isTrue(partly(watch("a", TRANSFER, [addressOf(1), addressOf(2)]), came))
    assert.isFalse(partly(watch("a", TRANSFER, [addressOf(1), addressOf(2)]), came, transferLog(addressOf(2))))
    assert.isTrue(partly(watch("a", TRANSFER, { args: { from: [addressOf(1), addressOf(5)] } }), came))
    assert.isFalse(
      partly(
        watch("a", TRANSFER, { args: { from: [addressOf(1), addressOf(5)] } }),
        came,
        logOf(addressOf(1), [TRANSFER_TOPIC, topicOf(5), topicOf(8)]),
      ),
    )
    assert.isTrue(misses(watch("a", NOTE, addressOf(1))))
    assert.isFalse(misses(watch("a", NOTE, addressOf(1)), came))
    assert.isFalse(misses(watch("a", NOTE, addressOf(2))))
  })

  it("believes no bloom that holds some of what is wanted by chance", () => {
    const full = bloomOf([TRANSFER_TOPIC, addressOf(1), ...Array.from({ length: 800 }, (_, i) => topicOf(i + 100))])
    const missesOf = (count: number) =>
      routing(
        watch(
          "a",
          TRANSFER,
          Array.from({ length: count }, (_, i) => addressOf(i + 1)),
        ),
      ).logs.misses(full, [])
    assert.isTrue(missesOf(1))
    assert.isFalse(missesOf(500))
  })
})

describe("routing of transactions", () => {
  const transactionOf = (over: Partial<Transaction>): Transaction => ({
    index: 0,
    hash: topicOf(1),
    from: addressOf(1),
    to: addressOf(2),
    value: 5n,
    input: "0x",
    ...over,
  })

  const wanting = (id: string, selector: Selector): Watch => ({ id, selector })

  const concerned = (routes: Routing, over: Partial<Transaction> = {}) => {
    const found = routes.transactions.routes(transactionOf(over))
    return found === null ? null : [...found.interests].toSorted()
  }

  it("finds the interests by sender, receiver, creation and value", () => {
    const routes = routing(
      wanting("all", { kind: "transaction" }),
      wanting("from 1", { kind: "transaction", from: addressOf(1) }),
      wanting("from 3", { kind: "transaction", from: addressOf(3) }),
      wanting("to 2", { kind: "transaction", to: [addressOf(2), addressOf(4)] }),
      wanting("1 to 4", { kind: "transaction", from: addressOf(1), to: addressOf(4) }),
      wanting("creations", { kind: "transaction", creation: true }),
      wanting("others", { kind: "transaction", creation: false }),
      wanting("5 wei", { kind: "transaction", min_value: 5 }),
      wanting("6 wei", { kind: "transaction", min_value: "6" }),
    )
    assert.deepStrictEqual(concerned(routes), ["5 wei", "all", "from 1", "others", "to 2"])
    assert.deepStrictEqual(concerned(routes, { to: addressOf(4), value: 6n }), [
      "1 to 4",
      "5 wei",
      "6 wei",
      "all",
      "from 1",
      "others",
      "to 2",
    ])
    assert.deepStrictEqual(concerned(routes, { to: null, from: null, value: null }), ["all", "creations"])
    assert.deepStrictEqual(concerned(routes, { to: null, value: null }), ["all", "creations", "from 1"])
    assert.isNull(concerned(routing(wanting("from 3", { kind: "transaction", from: addressOf(3) }))))
  })

  it("finds calls by the function and the address, those with the same names together", () => {
    const TRANSFER_CALL = "function transfer(address to, uint256 value)"
    const routes = routing(
      wanting("any", { kind: "call", function: TRANSFER_CALL }),
      wanting("at 2", { kind: "call", function: ["function other()", TRANSFER_CALL], address: addressOf(2) }),
      wanting("at 3", { kind: "call", function: TRANSFER_CALL, address: addressOf(3) }),
      wanting("named", { kind: "call", function: "function transfer(address dst, uint256 wad)" }),
    )
    const calls = (over: Partial<Transaction>) =>
      routes.transactions.routes(transactionOf(over))?.calls.map(({ interests }) => interests) ?? null
    assert.deepStrictEqual(calls({ input: "0xA9059CBB" }), [["any", "at 2"], ["named"]])
    assert.deepStrictEqual(calls({ input: "0xa9059cbb", to: addressOf(3) }), [["any", "at 3"], ["named"]])
    assert.isNull(calls({ input: "0xa9059c" }))
    assert.isNull(calls({ input: "0x12345678" }))
    assert.isNull(calls({ input: "0xa9059cbb", to: null }))
  })

  it("says how much of the blocks is needed", () => {
    assert.strictEqual(routing(watch("e", TRANSFER)).need, "nothing")
    assert.strictEqual(routing(watch("e", TRANSFER), wanting("b", { kind: "block" })).need, "headers")
    const call: Selector = { kind: "call", function: "function f()" }
    assert.strictEqual(routing(wanting("b", { kind: "block" }), wanting("c", call)).need, "transactions")
    assert.strictEqual(routing(wanting("t", { kind: "transaction" })).need, "transactions")
  })
})

describe("blooms", () => {
  it("hold what was put in, by another implementation", () => {
    const values = Array.from({ length: 20 }, (_, i) => addressOf(i * 7919))
    const bloom = new Bloom(bloomOf(values))
    const found = (values: ReadonlyArray<string>) => values.filter((value) => bloom.find(bloomBits([value])) === 0)
    assert.deepStrictEqual(found(values), values)
    const others = Array.from({ length: 200 }, (_, i) => addressOf(i * 7919 + 1))
    const chance = found(others)
    assert.isBelow(chance.length, 5)
    assert.isBelow(bloom.byChance, 0.001)
    const absent = others.filter((one) => !chance.includes(one))
    assert.strictEqual(bloom.find(bloomBits([...absent, ...values])), absent.length)
    assert.strictEqual(bloom.find(bloomBits(absent)), -1)
  })
})
