import { assert, describe, it } from "@effect/vitest"
import { PredicateFailure } from "../../../core/predicate/predicate.ts"
import { ALICE, argsWith, compiled, eventWith, failureOf, holds } from "./support.ts"

const alice = ALICE.toLowerCase()

describe("what predicates say", () => {
  it.for([
    "args.value >= 5 && args.to != args.from",
    "args.value < 5 || name == 'Transfer'",
    "!(args.value == 6)",
    "args.ok",
    "args.ok ? args.value == 5 : args.value == 6",
    "block.number > 18999999 && block.number == 19000000",
    "args['value'] == 5 && args[\"in\"] == 1",
    "args.price > 1.0 && args.price + 0.5 == 2.0 && -args.price < 0.0",
    "args.price > 1 && args.value > 4.5 && args.value == 5.0",
    "name.startsWith('Tra') && name.endsWith('fer') && name.contains('ans')",
    "name + '!' == 'Transfer!' && size(name) == 8 && name.size() == 8",
    "name.lowerAscii() == 'transfer' && name.upperAscii() == 'TRANSFER' && ' a '.trim() == 'a'",
    "name.substring(5) == 'fer' && name.substring(0, 3) == 'Tra' && name.indexOf('s') == 4 - 1 + 1",
    "size('\u{1F600}') == 1",
    "'a' < 'b' && 'b' >= 'b'",
    "args.value in [1, 5] && !(args.value in [])",
    "args.value in args.ids || 3 in args.ids",
    "block.number in [19000000] && 2 in block.positions && block.positions == [1, 2]",
    "args.ids == [1, 2, 3] && args.ids != [1, 2] && args.ids[2] == 3 && args.ids + [4] == [1, 2, 3, 4]",
    "size(args.ids) == 3 && args.ids.size() == 3",
    "args.ids.all(i, i > 0) && args.ids.exists(i, i == 2) && args.ids.exists_one(i, i > 2)",
    "args.ids.filter(i, i > 1).map(i, i * 2) == [4, 6] && args.ids.map(i, i > 1, -i) == [-2, -3]",
    "args.ids.all(i, args.ids.exists(j, j == i)) && [].all(x, x > 1)",
    "args.orders.exists(o, o.amount > 15) && args.orders[0].amount == 10",
    "args.ids.map(value, value + args.value)[0] == 6",
    "int('-12') == -12 && int(2.9) == 2 && int(args.value) == 5 && double(args.value) == 5.0",
    "string(args.value) == '5' && string(true) == 'true' && string(1.5) == '1.5' && double('1.5') == 1.5",
    "true && true && true && (false || false || true)",
  ])("%s", (source) => {
    assert.isTrue(holds(source))
  })

  it("a failing operand is forgotten when another one decides", () => {
    assert.isTrue(holds("1 / (args.value - 5) > 0 || args.ok"))
    assert.isFalse(holds("1 / (args.value - 5) > 0 && !args.ok"))
    assert.isFalse(holds("1 / (args.value - 5) > 0 && args.ok && !args.ok"))
    assert.isTrue(holds("args.ids.exists(i, 1 / (i - 1) > 0 || i == 3)"))
    assert.isFalse(holds("args.ids.all(i, 1 / (i - 1) > 9)"))
  })

  it("a failure that nothing decides is no answer", () => {
    assert.include(failureOf("1 / (args.value - 5) > 0 || !args.ok"), "division by zero (line 1, column 1)")
    assert.include(failureOf("1 / (args.value - 5) > 0 && args.ok"), "division by zero")
    assert.include(failureOf("args.ok && args.ok && 1 % (args.value - 5) > 0"), "division by zero")
    assert.include(failureOf("args.ids.exists(i, 1 / (i - 1) < 0)"), "division by zero")
    assert.include(failureOf("args.ids.exists_one(i, 1 / (i - 1) > 0)"), "division by zero")
    assert.include(failureOf("args.ids[3] == 1"), "no element 3, its size is 3 (line 1, column 1)")
    assert.include(failureOf("args.ids[-1] == 1"), "no element -1")
    assert.include(failureOf("int(name) == 1"), "no decimal integer")
    assert.include(failureOf("double(name) == 1.0"), "no number")
    assert.include(failureOf("name.substring(9) == ''"), "outside a text of 8 characters")
  })
})

describe("optional fields", () => {
  it("has() is false for what is absent, and for a field of an absent record", () => {
    for (const path of ["note", "call", "call.gas", "call.inner", "call.inner.depth", "call['inner'].depth"]) {
      assert.isFalse(holds(`has(${path})`), path)
    }
    const event = eventWith({}, { call: { gas: null, inner: { depth: 2 } } })
    assert.isFalse(holds("has(call.gas)", event))
    assert.isTrue(holds("has(call.inner.depth) && call.inner.depth == 2", event))
    assert.isTrue(holds("has(args.value)"))
  })

  it("has() guards the reading", () => {
    assert.isFalse(holds("has(call.gas) && call.gas > 5"))
    assert.isTrue(holds("!has(note) || note == 'x'"))
  })

  it("reading what is absent is a failure that names it", () => {
    assert.include(failureOf("note == 'x'"), "note is absent")
    assert.include(failureOf("call.gas > 5"), "call is absent")
    assert.include(failureOf("call.gas > 5", eventWith({}, { call: { gas: null, inner: null } })), "call.gas is absent")
  })
})

describe("events", () => {
  it("only the fields that a predicate reads are touched", () => {
    class Args {
      reads: Array<string> = []
      get value(): bigint {
        this.reads.push("value")
        return 5n
      }
      get to(): string {
        this.reads.push("to")
        return alice
      }
    }
    const args = new Args()
    const event = {
      get block(): never {
        throw new Error("the block was read")
      },
      args: args as unknown as ReturnType<typeof argsWith>,
    }
    assert.isFalse(holds("args.value > 5 && args.to == args.from", event))
    assert.deepStrictEqual(args.reads, ["value"])
  })

  it("an error of a getter is a failure, even where another operand would decide", () => {
    const broken = {
      get name(): string {
        throw new TypeError("cannot decode")
      },
      args: argsWith(),
    }
    assert.include(failureOf("name == 'x'", broken), "cannot decode")
    assert.include(failureOf("name == 'x' || args.ok", broken), "cannot decode")
  })

  it("a value that is not of its declared type is a failure, not an answer", () => {
    assert.include(failureOf("args.value > 1", eventWith({ value: "5" })), "args.value is declared as int")
    assert.include(failureOf("block.number > 1", eventWith({}, { block: { number: 1.5 } })), "block.number")
    assert.include(failureOf("args.ok", eventWith({ ok: 1 })), "declared as bool")
    assert.include(failureOf("args.price > 1.0", eventWith({ price: "1" })), "declared as double")
    assert.include(failureOf("size(args.ids) > 1", eventWith({ ids: 1 })), "declared as list<int>")
    assert.include(failureOf("args.value > 1", { args: 1 }), "args is declared as record")
    assert.include(failureOf("name == ''", { name: 1 }), "declared as string")
    assert.include(
      failureOf("args.ids.exists(i, i == 9)", eventWith({ ids: [null] })),
      "an element of args.ids is absent",
    )
  })

  it("a predicate can be evaluated again after a failure", () => {
    const evaluate = compiled("10 / args.value == 2")
    assert.throws(() => evaluate(eventWith({ value: 0n })), PredicateFailure)
    assert.isTrue(evaluate(eventWith()))
  })
})
