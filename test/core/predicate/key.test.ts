import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Fields } from "../../../core/model/fields.ts"
import { compileKey } from "../../../core/predicate/key.ts"
import { PredicateFailure } from "../../../core/predicate/predicate.ts"
import { ALICE, eventWith, shape } from "./support.ts"

const keyOf = (source: string, event: Fields = eventWith()): string => {
  const key = compileKey(source, shape)
  if ("problems" in key) assert.fail(`${source}: ${key.problems.map(({ message }) => message).join("; ")}`)
  return key.keyOf(event)
}

const problemsOf = (source: string): ReadonlyArray<string> => {
  const key = compileKey(source, shape)
  if (!("problems" in key)) assert.fail(`${source} was accepted`)
  return key.problems.map(({ message }) => message)
}

const named = (name: string): Fields => eventWith({}, { name })

describe("the key by which a gate tells hits apart", () => {
  it("is the value of an expression in its canonical text", () => {
    assert.strictEqual(keyOf("name"), "Transfer")
    assert.strictEqual(keyOf("args.from"), ALICE.toLowerCase())
    assert.strictEqual(keyOf("args.data"), "0xa9059cbb00")
    assert.strictEqual(keyOf("args.value > 1"), "true")
    assert.strictEqual(keyOf("args.value"), "5")
    assert.strictEqual(keyOf("args.value / 2"), "2")
    assert.strictEqual(keyOf("block.number"), "19000000")
    assert.strictEqual(keyOf("args.value > 1 ? 'large' : 'small'"), "large")
  })

  it("holds integers of any size exactly", () => {
    const huge = 2n ** 256n - 1n
    const key = (value: bigint) => keyOf("args.value", eventWith({ value }))
    assert.strictEqual(key(huge), huge.toString())
    assert.notStrictEqual(key(huge), key(huge - 1n))
    assert.strictEqual(key(-5n), "-5")
  })

  it("is the same for an integer that the source holds as a number", () => {
    assert.strictEqual(keyOf("block.number + 0"), keyOf("block.number"))
  })

  it("is short and storable whatever a string holds, and differs where the string does", () => {
    const odd = ["a".repeat(128), "a".repeat(129), "a\0", "a", "\uD800", "\uD801", "\uFFFD", "", "a".repeat(127)]
    const keys = odd.map((name) => keyOf("name", named(name)))
    assert.strictEqual(new Set(keys).size, odd.length)
    for (const key of keys) {
      assert.isAtMost(key.length, 128)
      assert.isTrue(key.isWellFormed() && !key.includes("\0"))
    }
    // A string that looks like the key of another one is not taken for it.
    assert.notStrictEqual(keyOf("name", named(keys[0]!)), keys[0])
  })

  it.effect.prop("is equal for equal strings alone", { a: Schema.String, b: Schema.String }, ({ a, b }) =>
    Effect.sync(() => assert.strictEqual(keyOf("name", named(a)) === keyOf("name", named(b)), a === b)),
  )

  it("is refused unless it is a string, an address, bytes, a bool or an int, with line and column", () => {
    for (const [source, place, type] of [
      ["args.price", "line 1, column 6", "a double"],
      ["\n[args.value]", "line 2, column 1", "a list<int>"],
      ["args", "line 1, column 1", "a record"],
    ] as const) {
      assert.deepStrictEqual(problemsOf(source), [
        `${place}: the key is ${type}; it must be a string, an address, bytes, a bool or an int, as in args.from`,
      ])
    }
    assert.match(problemsOf("\n args.nope")[0]!, /^line 2, column 7: args has no field nope/)
    assert.match(problemsOf(" ")[0]!, /^the key is empty; write a field, as in args.from, or leave it out/)
    assert.match(problemsOf("args.from +")[0]!, /the end of the key/)
    assert.strictEqual(problemsOf("args.nope + nope").length, 2)
  })

  it("that cannot be computed fails, and is never an empty one", () => {
    for (const [source, reason] of [
      ["args.value / 0", /zero/],
      ["note", /note is absent in this event/],
    ] as const) {
      assert.throws(() => keyOf(source), reason)
      try {
        keyOf(source)
      } catch (error) {
        assert.instanceOf(error, PredicateFailure)
      }
    }
    assert.strictEqual(keyOf("has(note) ? note : ''", eventWith()), "")
  })
})
