import { assert, describe, it } from "@effect/vitest"
import { problemsOf } from "./support.ts"

const only = (source: string): string => {
  const problems = problemsOf(source)
  assert.strictEqual(problems.length, 1, problems.join("\n"))
  return problems[0] ?? ""
}

describe("problems of a predicate", () => {
  it("all are reported at once, in the order of their places", () => {
    assert.deepStrictEqual(
      problemsOf('args.valu > 5 &&\n  nope == 1 && "0x12" == args.to').map((message) => message.slice(0, 32)),
      ["line 1, column 6: args has no fi", "line 2, column 3: there is no fi", 'line 2, column 16: "0x12" is no '],
    )
  })

  it("an unknown field names the fields that there are, with their types", () => {
    const message = only("args.valu > 5")
    assert.include(message, "line 1, column 6: args has no field valu; it has value (int)")
    assert.include(message, "owners (list<address>)")
    assert.include(only("block.number.low == 1"), "block.number is an int, which has no field low")
    assert.include(only("args.orders.exists(o, o.taker == args.to)"), "o has no field taker; it has maker (address)")
    assert.include(only("args['nope'] == 1"), "args has no field nope")
    assert.include(only("args.constructor == 1"), "args has no field constructor")
  })

  it("an unknown name names the fields of the event and a likely path", () => {
    assert.include(only("value > 5"), "no field value (did you mean args.value?); the event has name (string)")
    assert.include(only("toString == 5"), "there is no field toString; the event has")
    assert.include(only("args.ids.all(i, i > 0) && i > 0"), "there is no field i")
  })

  it("has() is checked like a reading", () => {
    assert.include(only("has(args.nope)"), "args has no field nope")
    assert.include(only("has(nope.value)"), "there is no field nope")
    assert.include(only("has(args.value.x)"), "args.value is an int, which has no field x")
    for (const source of ["has(1)", "has(args.ids[0])", "has()", "has(args.value, args.to)"]) {
      assert.include(only(source), "has() takes one field")
    }
  })

  it("the result is a bool", () => {
    assert.include(only("args.value"), "the predicate is an int; it must be a bool")
    assert.include(only("[true]"), "the predicate is a list<bool>; it must be a bool")
    assert.include(only("args"), "the predicate is a record")
  })

  it.for([
    ["args.value > 'a'", "args.value is an int and 'a' is a string: > cannot compare them"],
    ["args.ok == 1", "== cannot compare them"],
    ["args.ok < true", "< cannot compare them"],
    ["args == args", "compare its fields"],
    ["args.ids == args.owners", "== cannot compare them"],
    ["args.value + 1.5 > 2.0", "+ stands between an int and a double"],
    ["args.price % 2.0 == 1.0", "it takes two ints"],
    ["name - name == ''", "- stands between a string and a string"],
    ["-name == ''", "- takes an int or a double; name is a string"],
    ["!args.value", "! takes bools; args.value is an int"],
    ["args.ok && args.value", "&& takes bools; args.value is an int"],
    ["args.value ? true : false", "?: takes bools"],
    ["(args.ok ? 1 : 'a') == 1", "both results of ?: have one type"],
    ["args.value in args.owners", "args.value is an int and args.owners holds an address"],
    ["args.value in [1, 'a']", "the list holds int here; 'a' is a string"],
    ["[1, 2.0] == [1]", "the list holds int here; 2.0 is a double"],
    ["'a' in name", "text.contains(part) searches"],
    ["'value' in args", "has(record.field) tells"],
    ["args.value[0] == 1", "only lists have elements"],
    ["args.ids['0'] == 1", "args.ids is a list<int>, which has no field 0"],
    ["args.ids[1.0] == 1", "the index of a list is an int, not a double"],
    ["args[name] == 1", "is named by a literal"],
    ["args.value.exists(x, x > 1)", "exists() goes through a list; args.value is an int"],
    ["args.ids.exists(x, x)", "exists() takes bools; x is an int"],
    ["args.ids.all(x)", "all() takes a variable and an expression"],
    ["args.ids.map(x, x > 1) == [1]", "the list holds bool here; 1 is an int"],
    ["name.startsWith(1)", "there is no string.startsWith(int); there is string.startsWith(string)"],
    ["size(1) == 1", "there is no size(int)"],
    ["nope(1)", "there is no function nope(); there are has, size"],
    ["{'a': 1}.a == 1", "no maps"],
    ["args.value == null", "has(args.x) tells"],
    ["args.value > 5u", "write it without the u"],
    ["args.data == b'aa'", "bytes are written as a 0x hex string"],
    ["dyn(args.value) == 1", "dyn() would switch the type check off"],
    ["args.value > 1e24", "1e24 is a double and not exact; write the integer with all its digits"],
    ["-1e24 > args.value", "-1e24 is a double and not exact"],
  ] as const)("%s is refused", ([source, message]) => {
    assert.include(only(source), message)
  })

  it("matches() is refused with its alternatives", () => {
    const message = only("name.matches('T.*') && args.ok")
    for (const name of ["startsWith", "endsWith", "contains"]) assert.include(message, name)
  })
})
