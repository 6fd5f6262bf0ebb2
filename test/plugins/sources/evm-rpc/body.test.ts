import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { describe } from "vitest"
import { parseBody } from "../../../../plugins/sources/evm-rpc/rpc/body.ts"

/** A repeatable choice of whole numbers below a bound. */
const choices = (seed: number) => {
  let state = seed >>> 0
  return (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Texts that look like the places where a body is cut. */
const TRAPS = ['},{"a":1', "}]", '"result":[{', '\\"result\\":[{', "},", "é😀", '"', "\\", "0xab", "\n", ""]

const KEYS = ["address", "data", "result", '"result', "id", "x", "}]"]

/** Any value that an answer may hold. */
const value = (choose: (below: number) => number, depth: number): unknown => {
  const kind = choose(depth > 0 ? 6 : 4)
  if (kind === 0) return choose(1000) - 500
  if (kind === 1) return choose(2) === 0 ? null : true
  if (kind === 4) return Array.from({ length: choose(4) }, () => value(choose, depth - 1))
  if (kind === 5) return record(choose, depth)
  return TRAPS[choose(TRAPS.length)]! + "f".repeat(choose(300))
}

const record = (choose: (below: number) => number, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Array.from({ length: 1 + choose(5) }, () => [KEYS[choose(KEYS.length)]!, value(choose, depth - 1)]),
  )

const log = (choose: (below: number) => number) => ({
  address: `0x${choose(1e9)}`,
  topics: ["0xdd", `0x${choose(1e9)}`],
  data: `0x${"0".repeat(400)}`,
  removed: false,
})

/** The text of a long answer, alone or one of a batch. */
const answer = (choose: (below: number) => number): string => {
  const item = choose(3) === 0 ? () => record(choose, 2) : () => log(choose)
  const list = Array.from({ length: 700 + choose(700) }, item)
  if (choose(4) === 0) list[choose(list.length)] = { trap: value(choose, 2) } as never
  const long = choose(2) === 0 ? { jsonrpc: "2.0", id: 1, result: list } : { result: list, id: 1, ...record(choose, 1) }
  const body = choose(3) === 0 ? long : [record(choose, 2), long, { id: 2, result: record(choose, 2) }]
  return JSON.stringify(body, null, choose(5) === 0 ? 1 : 0)
}

const expected = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString("utf8"))
  } catch {
    return undefined
  }
}

describe("the body of an answer", () => {
  it.prop("is what JSON.parse makes of it", { seed: Schema.Int }, ({ seed }) => {
    const bytes = Buffer.from(answer(choices(seed)))
    assert.deepStrictEqual(parseBody(bytes), expected(bytes))
  })

  it.prop("is what JSON.parse makes of it also when bytes are wrong", { seed: Schema.Int }, ({ seed }) => {
    const choose = choices(seed)
    const bytes = Buffer.from(answer(choose))
    for (let i = 0; i < 1 + choose(3); i++)
      bytes[choose(bytes.length)] = Buffer.from('"{}[],:\\ 0a\xff', "latin1")[choose(12)]!
    const cut = choose(3) === 0 ? bytes.subarray(0, choose(bytes.length)) : bytes
    assert.deepStrictEqual(parseBody(cut), expected(cut))
  })

  it("may hold a list that is no result, or that another one of the same name replaces", () => {
    const logs = JSON.stringify(Array.from({ length: 1000 }, () => log(choices(1))))
    for (const text of [
      `{"id":1,"extra":{"result":${logs}},"result":null}`,
      `{"id":1,"result":${logs},"result":[]}`,
      `{"id":1,"\\"result":${logs}}`,
      `[{"id":1,"result":${logs}},{"id":2,"result":${logs}}]`,
      `[{"id":1,"result":${logs}]`,
      `[{"id":1,"result":${logs},}]`,
    ])
      assert.deepStrictEqual(parseBody(Buffer.from(text)), expected(Buffer.from(text)))
  })
})
