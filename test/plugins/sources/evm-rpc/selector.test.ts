import { assert, describe, it } from "vitest"
import { getAddress } from "viem"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"

const describeEvent = (event: string, address?: string | ReadonlyArray<string>) =>
  evmRpc.describe({ kind: "event", event, ...(address === undefined ? {} : { address }) })

const problemsOf = (described: ReturnType<typeof evmRpc.describe>) =>
  "problems" in described ? described.problems : []

const argsOf = (event: string) => {
  const described = describeEvent(event)
  if ("problems" in described) throw new Error(JSON.stringify(described.problems))
  return described.fields.fields["args"] as any
}

const address = "0x52908400098527886e0f7030069857d2e4169ee7"

describe("selectors", () => {
  it("refuse a signature that is too long for the parser, instead of failing in it", () => {
    const [problem] = problemsOf(describeEvent(`event E(${"uint256,".repeat(20_000)}uint256)`))
    assert.match(problem!.message, /has 160016 characters; at most 4096/)
  })

  it("name the fields of an event in the order of its JSON, and what identifies it", () => {
    const described = describeEvent("event Transfer(address indexed from, address indexed to, uint256 value)")
    if ("problems" in described) throw new Error("refused")
    assert.deepStrictEqual(Object.keys(described.fields.fields), [
      "kind",
      "name",
      "signature",
      "address",
      "args",
      "log",
      "transaction",
      "block",
    ])
    assert.deepStrictEqual(described.identity, [
      "block.number",
      "block.hash",
      "log.index",
      "address",
      "signature",
      "args",
    ])
    assert.deepStrictEqual(described.fields.fields["args"], {
      kind: "record",
      positional: true,
      fields: { from: { kind: "address" }, to: { kind: "address" }, value: { kind: "int" } },
    })
  })

  it("map every ABI type", () => {
    const args = argsOf(
      "event E(uint8 a, int b, bool c, string d, bytes e, bytes4 f, address g, uint256[2][] h, (uint x, (bool y)[] z) i)",
    )
    const int = { kind: "int" }
    assert.deepStrictEqual(args.fields, {
      a: int,
      b: int,
      c: { kind: "bool" },
      d: { kind: "string" },
      e: { kind: "bytes" },
      f: { kind: "bytes" },
      g: { kind: "address" },
      h: { kind: "list", items: { kind: "list", items: int } },
      i: {
        kind: "record",
        positional: true,
        fields: {
          x: int,
          z: { kind: "list", items: { kind: "record", positional: true, fields: { y: { kind: "bool" } } } },
        },
      },
    })
  })

  it("yield the hash of indexed values that have no fixed size", () => {
    const args = argsOf("event E(string indexed a, bytes indexed b, uint[] indexed c)")
    assert.deepStrictEqual(Object.values(args.fields), [{ kind: "bytes" }, { kind: "bytes" }, { kind: "bytes" }])
  })

  it("number arguments without names", () => {
    assert.deepStrictEqual(Object.keys(argsOf("event E(uint, address indexed)").fields), ["0", "1"])
    assert.deepStrictEqual(Object.keys(argsOf("event E(uint, address indexed who, bool)").fields), [
      "arg0",
      "who",
      "arg2",
    ])
  })

  it("accept addresses in one case or with the right checksum", () => {
    for (const good of [address, `0x${address.slice(2).toUpperCase()}`, getAddress(address)])
      assert.deepStrictEqual(problemsOf(describeEvent("event E()", [good])), [])
    assert.strictEqual(evmRpc.address.parse(getAddress(address)), address)
    assert.strictEqual(evmRpc.address.format(address), getAddress(address))
  })

  it("are refused with every problem and its path", () => {
    const wrong = getAddress(address).replace("E", "e")
    const problems = problemsOf(describeEvent("event E(uint a, bool a)", [address, "0x12", wrong]))
    assert.deepStrictEqual(
      problems.map(({ path }) => path),
      ["address.1", "address.2", "event"],
    )
    assert.match(problems[2]!.message, /two parameters have the name 'a'/)
  })

  const refused: ReadonlyArray<readonly [string, RegExp]> = [
    ["function f()", /does not begin with 'event'/],
    ["Transfer(address)", /does not begin with 'event'/],
    ["event E(", /Unknown signature/],
    ["event E(uint7 a)", /Type "uint7" is not a valid ABI type/],
    ["event E(function f)", /\(function\) is not supported/],
    ["event E(uint indexed a, uint indexed b, uint indexed c, uint indexed d)", /4 parameters are indexed/],
    ["", /does not begin with 'event'/],
  ]
  for (const [event, message] of refused)
    it(`'${event}' is refused with a reason`, () => {
      const problems = problemsOf(describeEvent(event))
      assert.strictEqual(problems[0]?.path, "event")
      assert.match(problems[0]!.message, message)
    })

  it("refuse an empty list of addresses", () => {
    assert.match(problemsOf(describeEvent("event E()", []))[0]!.message, /the list is empty/)
  })
})
