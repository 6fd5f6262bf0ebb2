import { assert, describe, it } from "@effect/vitest"
import { compiled, eventWith, failureOf, holds, problemsOf } from "./support.ts"

const FAST_MS = 1000

const within = <A>(run: () => A): A => {
  const start = performance.now()
  const result = run()
  assert.isBelow(performance.now() - start, FAST_MS)
  return result
}

const zeros = (count: number): string => `[${"0,".repeat(count - 1)}0]`
const ids = (count: number): ReadonlyArray<bigint> => Array.from({ length: count }, (_, i) => BigInt(i))

describe("limits when a predicate is written", () => {
  it.for([
    ["source", `args.ok && ${"true".padStart(5000)}`, "at most 4096 are accepted"],
    ["parts", `${"1+".repeat(1500)}1 > 0`, "more than 2000 parts"],
    ["signs", `${"!".repeat(4000)}args.ok`, "more than 2000 parts"],
    ["operators", `${"1+".repeat(500)}1 > 0`, "nested deeper than 256 operators"],
    ["parentheses", `${"(".repeat(2000)}true${")".repeat(2000)}`, "nested deeper than 32 levels"],
    ["brackets", `${"[".repeat(2000)}1${"]".repeat(2000)} == []`, "nested deeper than 32 levels"],
    ["list", `1 in ${zeros(1500)}`, "more than 1000 elements"],
    ["nothing", " ", "the predicate is empty"],
  ] as const)("too much of: %s", ([, source, message]) => {
    const problems = within(() => problemsOf(source))
    assert.strictEqual(problems.length, 1)
    assert.include(problems[0] ?? "", message)
  })

  it("long chains of && and || are accepted", () => {
    assert.isTrue(holds(`${"args.ok&&".repeat(400)}true`))
    assert.isTrue(holds(`${"false||".repeat(500)}args.ok`))
  })

  it("the lists and the source may be as long as the limits say", () => {
    assert.isFalse(holds(`args.value in ${zeros(1000)}`))
    assert.isTrue(holds("args.ok".padStart(4096)))
  })
})

describe("limits of an evaluation", () => {
  it("ten thousand steps are done and not one more", () => {
    assert.isTrue(holds("args.ids.all(i, i >= 0)", eventWith({ ids: ids(10_000) })))
    assert.include(failureOf("args.ids.all(i, i >= 0)", eventWith({ ids: ids(10_001) })), "more than 10000 steps")
  })

  it("each evaluation has its own steps", () => {
    const event = eventWith({ ids: ids(6_000) })
    const evaluate = compiled("args.ids.all(i, i >= 0)")
    for (let i = 0; i < 3; i++) assert.isTrue(evaluate(event))
    assert.include(failureOf("args.ids.all(i, i >= 0) && args.ids.all(i, i >= 0)", event), "more than 10000 steps")
  })

  it.for([
    "args.ids.all(i, args.ids.all(j, i + j >= 0)) || args.ok",
    "args.ok && args.ids.all(i, args.ids.all(j, i + j >= 0)) && !args.ok",
    "args.ids.exists(i, args.ids.exists(j, j < 0) || i == 999)",
    "!args.ids.all(i, args.ids.all(j, i + j >= 0) || i < 0)",
    "args.ids.exists_one(i, args.ids.exists(j, j < 0))",
    "args.ids.map(i, args.ids.map(j, i * j)) == []",
    "args.ids.filter(i, args.ids.filter(j, j > i) == []) == []",
  ])("spent steps are not swallowed: %s", (source) => {
    const event = eventWith({ ids: ids(1_000) })
    assert.include(
      within(() => failureOf(source, event)),
      "more than 10000 steps",
    )
  })

  it("sums of texts and of lists are capped, also under ||", () => {
    const event = eventWith({ ids: ids(6_000) }, { name: "x".repeat(40_000) })
    assert.include(failureOf("name + name == '' || args.ok", event), "more than 65536 characters (line 1, column")
    assert.include(failureOf("args.ids + args.ids == [] || args.ok", event), "more than 10000 elements")
    assert.isTrue(holds("size(name + 'y') == 40001 && size(args.ids + [1]) == 6001", event))
  })

  it("a failure deep inside of && and || costs no more than its depth", () => {
    let source = "1 / (args.value - 5) > 0"
    for (let i = 0; i < 14; i++) source = `((${source} || false) && true)`
    assert.include(
      within(() => failureOf(source)),
      "division by zero",
    )
  })

  it.for([
    "args.ids.exists(i, args.data.contains('ffff'))",
    "args.ids.exists(i, size(args.data) == 1)",
    "args.ids.exists(i, args.data.substring(0, 60000) + name == name)",
    "args.ids.exists(i, -1 in args.ids)",
    `args.ids.exists(i, ${"1 / 0 > i || ".repeat(20)}false)`,
    "args.ids.exists(i, args.ids + [1] == args.ids + [2])",
    `args.ids.exists(i, ${"i*i*i*i*i*i*i*i+".repeat(100)}1 == 0)`,
  ])("dear work on long values counts as many steps: %s", (source) => {
    const event = eventWith({ ids: ids(4_000), data: `0x${"00".repeat(500_000)}` })
    assert.include(
      within(() => failureOf(source, event)),
      "more than 10000 steps",
    )
  })
})
