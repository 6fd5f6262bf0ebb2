import { assert, describe, it } from "@effect/vitest"
import { InvalidPosition } from "../../../core/engine/error.ts"
import { aheadOf, decodePosition, encodePosition, staleness } from "../../../core/engine/feed/position.ts"

const json = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

const reason = (token: ReturnType<typeof decodePosition>): string => {
  assert.instanceOf(token, InvalidPosition)
  return token.message
}

describe("a position token", () => {
  it("holds the position of each network, and the bound of a page", () => {
    const positions = new Map([
      ["a", 5],
      ["b", 2 ** 40],
    ])
    assert.deepStrictEqual(decodePosition(encodePosition(undefined, positions), undefined), { positions, bound: null })
    const bound = new Map([["a", 9]])
    assert.deepStrictEqual(decodePosition(encodePosition("a", positions, bound), "a"), { positions, bound })
    assert.match(encodePosition("a", positions, bound), /^[A-Za-z0-9_-]+$/)
  })

  it("that is 0 stands for the oldest, under any network argument", () => {
    const oldest = { positions: new Map(), bound: null }
    assert.deepStrictEqual(decodePosition("0", undefined), oldest)
    assert.deepStrictEqual(decodePosition("0", "a"), oldest)
  })

  it("is refused under another network argument, and the reason names both", () => {
    const a = encodePosition("a", new Map([["a", 1]]))
    const all = encodePosition(undefined, new Map([["a", 1]]))
    assert.match(reason(decodePosition(a, "b")), /made for network 'a', but the request names network 'b'/)
    assert.match(reason(decodePosition(a, undefined)), /made for network 'a', but the request names all networks/)
    assert.match(reason(decodePosition(all, "a")), /made for all networks, but the request names network 'a'/)
  })

  it("is refused when the feed did not make it", () => {
    const bad = [
      "",
      "1",
      "00",
      "🚀",
      "not base64!",
      json(null),
      json({}),
      json([1]),
      json([1, null]),
      json([1, 5, {}]),
      json([1, null, []]),
      json([1, null, { a: -1 }]),
      json([1, null, { a: 0.5 }]),
      json([1, null, { a: "1" }]),
      json([1, null, {}, null]),
      json([1, null, {}, { a: null }]),
      json([1, null, {}, {}, {}]),
    ]
    for (const token of bad) assert.match(reason(decodePosition(token, undefined)), /this is no position of the feed/)
    assert.match(reason(decodePosition(json([2, { future: true }]), undefined)), /another version/)
  })

  it("survives network ids that are names of object properties", () => {
    const positions = new Map([
      ["constructor", 1],
      ["toString", 2],
    ])
    assert.deepStrictEqual(decodePosition(encodePosition(undefined, positions), undefined), { positions, bound: null })
  })

  it("is refused when it is ahead of the feed", () => {
    const states = [{ network: "a", position: 5, trims: [] }]
    assert.isNull(aheadOf(new Map([["a", 5]]), states))
    assert.isNull(aheadOf(new Map([["gone", 50]]), states))
    assert.match(aheadOf(new Map([["a", 6]]), states)!.message, /network 'a'.*another database/)
  })
})

const at = (a: number, b: number) =>
  new Map([
    ["a", a],
    ["b", b],
  ] as const)

describe("staleness", () => {
  const states = [
    {
      network: "a",
      position: 100,
      trims: [
        { monitor: "m", kind: "match", position: 50 },
        { monitor: "n", kind: "retracted", position: 60 },
      ],
    },
    { network: "b", position: 100, trims: [{ monitor: "m", kind: "match", position: 10 }] },
  ] as const

  it("is told only where an item that the filter shows was trimmed behind the position", () => {
    const both = ["match", "retracted"] as const
    assert.isNotNull(staleness(at(49, 100), { kinds: both }, states))
    assert.isNotNull(staleness(at(59, 100), { kinds: both }, states))
    assert.isNull(staleness(at(60, 10), { kinds: both }, states))
    assert.isNull(staleness(at(50, 10), { kinds: ["match"] }, states))
    assert.isNull(staleness(at(50, 10), { kinds: both, monitor: "m" }, states))
    assert.isNotNull(staleness(at(49, 10), { kinds: both, monitor: "m" }, states))
    assert.isNull(staleness(at(0, 10), { kinds: ["retracted"], monitor: "m" }, states))
    assert.isNull(staleness(at(0, 10), { kinds: both, network: "b" }, states))
    assert.isNull(staleness(at(0, 0), { kinds: [] }, states))
    assert.isNull(staleness(new Map(), { kinds: both }, states))
  })

  it("answers with a token that keeps the good positions and is not stale", () => {
    const stale = staleness(
      new Map([
        ["a", 1],
        ["b", 20],
        ["c", 3],
      ] as const),
      { kinds: ["match"] },
      states,
    )
    const token = decodePosition(stale!.oldest, undefined)
    assert.notInstanceOf(token, InvalidPosition)
    assert.deepStrictEqual(token, {
      positions: new Map([
        ["b", 20],
        ["c", 3],
      ] as const),
      bound: null,
    })
  })
})
