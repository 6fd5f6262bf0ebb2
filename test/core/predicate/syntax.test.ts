import { assert, describe, it } from "@effect/vitest"
import { type Node, parse } from "../../../core/predicate/syntax.ts"
import { problemsOf } from "./support.ts"

const tree = (source: string): Node => {
  const parsed = parse(source, { name: "the predicate", instead: "write true" })
  return "problem" in parsed ? assert.fail(parsed.problem.message) : parsed
}

describe("the tree that the parser gives", () => {
  it("holds every kind of node in the form that the compiler reads", () => {
    for (const source of ["a || b", "a && b", "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a in b"]) {
      const { op, args } = tree(source)
      assert.strictEqual(op, source.split(" ")[1])
      assert.deepStrictEqual(
        (args as ReadonlyArray<Node>).map((node) => [node.op, node.args]),
        [
          ["id", "a"],
          ["id", "b"],
        ],
      )
    }
    for (const op of ["+", "-", "*", "/", "%"]) assert.strictEqual(tree(`1 ${op} 2`).op, op)
    assert.deepStrictEqual(tree("!a").toOldStructure(), ["!_", ["id", "a"]])
    assert.deepStrictEqual(tree("-a").toOldStructure(), ["-_", ["id", "a"]])
    assert.deepStrictEqual(tree("a.b").toOldStructure(), [".", ["id", "a"], "b"])
    assert.deepStrictEqual(tree("a[0]").toOldStructure(), ["[]", ["id", "a"], ["value", 0n]])
    assert.deepStrictEqual(tree("a ? b : c").toOldStructure(), ["?:", ["id", "a"], ["id", "b"], ["id", "c"]])
    assert.deepStrictEqual(tree("[a, 'b', 1.5]").toOldStructure(), [
      "list",
      ["id", "a"],
      ["value", "b"],
      ["value", 1.5],
    ])
  })

  it("keeps the arguments of comprehensions and has() as they were written", () => {
    const all = tree("a.all(x, x > 1)")
    assert.strictEqual(all.op, "rcall")
    const [method, list, [variable, body]] = all.args as [string, Node, [Node, Node]]
    assert.deepStrictEqual([method, list.args, variable.args, body.op], ["all", "a", "x", ">"])
    const has = tree("has(a.b)")
    assert.strictEqual(has.op, "call")
    const [name, [path]] = has.args as [string, [Node]]
    assert.deepStrictEqual([name, path.op], ["has", "."])
  })

  it("holds integers of any size", () => {
    assert.strictEqual(tree(`${2n ** 300n}`).args, 2n ** 300n)
    assert.strictEqual(tree("0xFFFFFFFFFFFFFFFFFFFF").args, 2n ** 80n - 1n)
  })
})

describe("a predicate that cannot be parsed", () => {
  it.for([
    ["args.value = 5", "line 1, column 12: '=' is no operator; equality is written =="],
    ["args.ok & args.ok", "line 1, column 9: '&' is no operator; 'and' is written &&"],
    ["args.ok |\nargs.ok", "line 1, column 9: '|' is no operator; 'or' is written ||"],
    ["args.ok &&\n  (", "line 2, column 4: the syntax is wrong: Unexpected token: the end of the predicate"],
    ["args.in == 1", 'line 1, column 6: a field name is expected; a field named like a keyword is written args["in"]'],
    ["name == 'a", "line 1, column 9: the syntax is wrong: Unterminated string"],
  ] as const)("%s", ([source, message]) => {
    assert.deepStrictEqual(problemsOf(source), [message])
  })
})
