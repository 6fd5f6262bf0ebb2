import { assert, describe, it } from "vitest"
import { bloomBits, mayHold } from "../../../../plugins/sources/evm-rpc/bloom.ts"
import { Routing, seenKey } from "../../../../plugins/sources/evm-rpc/routing.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { bloomOf } from "../../../support/simulator/bloom.ts"
import { addressOf, TRANSFER, TRANSFER_TOPIC } from "../../../support/simulator/transfer.ts"

const APPROVAL = "event Approval(address indexed owner, address indexed spender, uint256 value)"

const watch = (id: string, event: string, address?: string | ReadonlyArray<string>) => ({
  id,
  selector: { kind: "event", event, ...(address === undefined ? {} : { address }) } as Selector,
})

const routing = (...interests: ReadonlyArray<ReturnType<typeof watch>>) => new Routing({ version: 1, interests })

const interestsAt = (routes: Routing, address: string, topics = 3) =>
  routes.routes(TRANSFER_TOPIC, topics, address).map(({ interests }) => interests)

describe("routing", () => {
  it("joins interests of one event with the same names, so that a log is decoded once for all", () => {
    const routes = routing(
      watch("any", TRANSFER),
      watch("one", TRANSFER, addressOf(1)),
      watch("two", TRANSFER, [addressOf(1), addressOf(2)]),
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

  it("asks nodes for what all interests need together", () => {
    const both = routing(watch("a", TRANSFER, addressOf(1)), watch("b", APPROVAL, addressOf(2))).filter!
    assert.deepStrictEqual(both.address, [addressOf(1), addressOf(2)])
    assert.strictEqual(both.topics!.length, 2)
    assert.strictEqual(routing(watch("a", TRANSFER, addressOf(1)), watch("b", APPROVAL)).filter!.address, null)
    assert.strictEqual(routing().filter, null)
    const many = Array.from({ length: 600 }, (_, i) => addressOf(i))
    assert.strictEqual(routing(watch("a", TRANSFER, many)).filter!.address, null)
  })

  it("tells from a bloom that logs are missing", () => {
    const bloom = bloomOf([addressOf(1), TRANSFER_TOPIC])
    const none = new Set<string>()
    const seen = new Set([TRANSFER_TOPIC, seenKey(TRANSFER_TOPIC, addressOf(1))])
    assert.isTrue(routing(watch("a", TRANSFER)).misses(bloom, none))
    assert.isTrue(routing(watch("a", TRANSFER, addressOf(1))).misses(bloom, none))
    assert.isFalse(routing(watch("a", TRANSFER, addressOf(1))).misses(bloom, seen))
    assert.isFalse(routing(watch("a", TRANSFER, addressOf(2))).misses(bloom, none))
    assert.isFalse(routing(watch("a", APPROVAL)).misses(bloom, none))
    assert.isFalse(routing().misses(bloom, none))
  })
})

describe("blooms", () => {
  it("hold what was put in, by another implementation", () => {
    const values = Array.from({ length: 20 }, (_, i) => addressOf(i * 7919))
    const bloom = bloomOf(values)
    for (const value of values) assert.isTrue(mayHold(bloom, bloomBits(value)))
    const others = Array.from({ length: 200 }, (_, i) => addressOf(i * 7919 + 1))
    assert.isBelow(others.filter((value) => mayHold(bloom, bloomBits(value))).length, 5)
  })
})
