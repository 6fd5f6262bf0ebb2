import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { eventWith, failureOf, holds, problemsOf } from "./support.ts"

const UINT256_MAX = 2n ** 256n - 1n

const byte = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })))

/** Integers of up to 248 bits of either sign, so that sums and products stay within bounds. */
const integer = Arbitrary.map(
  Arbitrary.all({ bytes: Arbitrary.array(byte, { maxLength: 31 }), negative: Arbitrary.schema(Schema.Boolean) }),
  ({ bytes, negative }) => {
    const size = bytes.reduce((sum, next) => sum * 256n + BigInt(next), 0n)
    return negative ? -size : size
  },
)

const OPERATORS: { readonly [op: string]: (a: bigint, b: bigint) => bigint } = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "%": (a, b) => a % b,
}

const RELATIONS: { readonly [op: string]: (a: bigint, b: bigint) => boolean } = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
}

describe("integers", () => {
  it.effect.prop("arithmetic is exact, of fields and of literals", { a: integer, b: integer }, ({ a, b }) =>
    Effect.sync(() => {
      const event = eventWith({ value: a, other: b })
      for (const [op, apply] of Object.entries(OPERATORS)) {
        if (b === 0n && (op === "/" || op === "%")) continue
        const expected = apply(a, b)
        assert.isTrue(holds(`args.value ${op} args.other == ${expected}`, event), op)
        assert.isTrue(holds(`${a} ${op} ${b} == ${expected}`), op)
        assert.isFalse(holds(`args.value ${op} args.other == ${expected + 1n}`, event), op)
      }
      assert.isTrue(holds(`-args.value == ${-a}`, event))
    }),
  )

  it.effect.prop("comparisons and `in` are exact", { a: integer, b: integer }, ({ a, b }) =>
    Effect.sync(() => {
      for (const other of [a, a + 1n, a - 1n, b]) {
        const event = eventWith({ value: a, other, ids: [other] })
        for (const [op, apply] of Object.entries(RELATIONS)) {
          assert.strictEqual(holds(`args.value ${op} args.other`, event), apply(a, other))
          assert.strictEqual(holds(`args.value ${op} ${other}`, event), apply(a, other))
        }
        assert.strictEqual(holds("args.value in args.ids", event), a === other)
        assert.strictEqual(holds(`args.value in [${other}]`, event), a === other)
        assert.strictEqual(holds(`args.ids == [${a}]`, event), a === other)
      }
    }),
  )

  it("numbers of the source are exact integers in arithmetic too", () => {
    const event = eventWith({}, { block: { number: Number.MAX_SAFE_INTEGER, positions: [1] } })
    assert.isTrue(holds(`block.number * block.number == ${BigInt(Number.MAX_SAFE_INTEGER) ** 2n}`, event))
    assert.isTrue(
      holds(
        `block.number + 2 == ${Number.MAX_SAFE_INTEGER}1 / 10 + 2 && block.number in [${Number.MAX_SAFE_INTEGER}]`,
        event,
      ),
    )
    assert.isTrue(holds("args.value / block.number == 0 && -block.number < 0", event))
  })

  it("the greatest uint256 is a literal, in decimal and in hex", () => {
    const event = eventWith({ value: UINT256_MAX })
    assert.isTrue(holds(`args.value == ${UINT256_MAX} && args.value == 0x${UINT256_MAX.toString(16)}`, event))
    assert.isFalse(holds(`args.value == ${UINT256_MAX - 1n}`, event))
    assert.isTrue(holds(`args.value * args.value == ${UINT256_MAX ** 2n}`, event))
    assert.isTrue(holds(`int('${UINT256_MAX}') == args.value && string(args.value) == '${UINT256_MAX}'`, event))
  })

  it("an int and a double are compared by their exact values", () => {
    const event = eventWith({ value: 2n ** 53n + 1n, price: 2 ** 53 })
    assert.isTrue(holds("args.value > args.price && args.value != args.price", event))
  })

  it("a result beyond 512 bits is a failure", () => {
    const event = eventWith({ value: UINT256_MAX, other: 2n ** 511n })
    assert.include(failureOf("args.value * args.value * 2 > 0", event), "more than 512 bits (line 1, column")
    assert.include(failureOf("args.other + args.other > 0", event), "more than 512 bits")
    assert.include(failureOf("-args.other - args.other < 0", event), "more than 512 bits")
    assert.include(failureOf(`int('${2n ** 512n}') > 0`), "512 bits")
    assert.include(failureOf("int(1e300) > 0"), "512 bits")
    assert.include(problemsOf(`args.value < ${2n ** 512n}`)[0] ?? "", "has more than 512 bits")
    assert.isTrue(holds(`args.value < ${2n ** 512n - 1n}`))
  })

  it("division cuts towards zero and fails by zero", () => {
    assert.isTrue(holds("-7 / 2 == -3 && -7 % 2 == -1 && 7 / -2 == -3 && 7 % -2 == 1"))
    assert.include(failureOf("7 / (args.value - 5) == 1"), "division by zero")
    assert.include(failureOf("7 % (args.value - 5) == 1"), "division by zero")
  })
})
