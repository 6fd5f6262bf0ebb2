import { assert, describe, it } from "vitest"
import { Result } from "effect"
import type { RecordType } from "../../../../core/model/fields.ts"
import { decodeConfig } from "../../../../core/plugin/decode-config.ts"
import { compilePredicate } from "../../../../core/predicate/predicate.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import type { Selector } from "../../../../plugins/sources/evm-rpc/selector.ts"
import { addressOf, TRANSFER } from "../../../../server/devnet/simulated/transfer.ts"
import { shapeOf } from "./driver.ts"

const APPROVAL = "event Approval(address indexed owner, address indexed spender, uint256 value)"
const NFT = "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)"
const NOTE = "event Note(bytes4 indexed what, address indexed who, bytes data) anonymous"

/** Every problem of a selector as a person writes it, `path: message`. */
const problemsOf = (written: unknown): ReadonlyArray<string> => {
  const selector = decodeConfig(evmRpc.selector, written)
  const described = Result.isFailure(selector) ? { problems: selector.failure } : evmRpc.describe(selector.success)
  return "problems" in described ? described.problems.map(({ path, message }) => `${path}: ${message}`) : []
}

const argsOf = (selector: Selector): RecordType => shapeOf(selector).fields.fields["args"] as RecordType

const transferJson = {
  type: "event",
  name: "Transfer",
  anonymous: false,
  inputs: [
    { indexed: true, internalType: "address", name: "from", type: "address" },
    { indexed: true, internalType: "address", name: "to", type: "address" },
    { indexed: false, internalType: "uint256", name: "value", type: "uint256" },
  ],
}

describe("several events in one monitor", () => {
  it("have the fields of all: what they share is as it is, what some lack is optional, what differs is left out", () => {
    const { fields } = argsOf({
      kind: "event",
      event: [TRANSFER, APPROVAL, "event Minted(address to, uint8 value, string from)"],
    })
    assert.deepStrictEqual(fields, {
      to: { kind: "address", optional: true },
      value: { kind: "int" },
      owner: { kind: "address", optional: true },
      spender: { kind: "address", optional: true },
    })
  })

  it("let predicates read them by name, and refuse those whose types differ", () => {
    const selector: Selector = {
      kind: "event",
      event: [TRANSFER, "event Minted(address to, uint8 value, string from)"],
    }
    const compiled = (predicate: string) => compilePredicate(predicate, shapeOf(selector))
    assert.notProperty(
      compiled('name == "Minted" && args.value > 5 && args.to == "0x' + "1".repeat(40) + '"'),
      "problems",
    )
    const wrong = compiled("has(args.from)")
    assert.match("problems" in wrong ? wrong.problems[0]!.message : "", /args has no field from; it has to .*value/)
  })

  it("and one alone have one shape for their arguments", () => {
    const forms = Object.values(argsOf({ kind: "event", event: [TRANSFER, NFT] }).forms!)
    assert.deepStrictEqual(forms, [argsOf({ kind: "event", event: TRANSFER }), argsOf({ kind: "event", event: NFT })])
    assert.isUndefined(argsOf({ kind: "event", event: [TRANSFER] }).forms)
  })

  it("may be a whole ABI, as JSON or as signatures, structs included; the same one twice is one", () => {
    const others = [{ type: "constructor", inputs: [] }, { type: "error", name: "E", inputs: [] }, { type: "receive" }]
    const json = shapeOf({ kind: "event", abi: [...others, transferJson, transferJson] })
    assert.deepStrictEqual(json, shapeOf({ kind: "event", event: TRANSFER }))
    assert.deepStrictEqual(shapeOf({ kind: "event", abi: ["error E()", "function f()", TRANSFER] }), json)
    const struct = ["struct Inner { uint8 a; bytes b }", "struct Outer { Inner[2] c; int d; }", "event E(Outer x);"]
    const tuple = "event E(((uint8 a, bytes b)[2] c, int d) x)"
    assert.deepStrictEqual(shapeOf({ kind: "event", abi: struct }), shapeOf({ kind: "event", event: tuple }))
    const inJson = {
      type: "event",
      name: "E",
      inputs: [
        {
          name: "x",
          type: "tuple",
          components: [
            {
              name: "c",
              type: "tuple[2]",
              components: [
                { name: "a", type: "uint8" },
                { name: "b", type: "bytes" },
              ],
            },
            { name: "d", type: "int" },
          ],
        },
      ],
    }
    assert.deepStrictEqual(shapeOf({ kind: "event", abi: [inJson] }), shapeOf({ kind: "event", event: tuple }))
    const call = shapeOf({ kind: "call", abi: ["function f(uint a) external payable returns (bool)"] })
    assert.deepStrictEqual(call, shapeOf({ kind: "call", function: "function f(uint256 a)" }))
  })

  it("are read over lines and spaces, as source has them", () => {
    const spread = "  event Transfer(\n  address indexed from,\n  address indexed to,\n  uint256 value) ;\n"
    assert.deepStrictEqual(shapeOf({ kind: "event", event: spread }), shapeOf({ kind: "event", event: TRANSFER }))
  })
})

describe("what selectors yield", () => {
  it("is named in the order of its JSON, with what identifies it", () => {
    const outline = (selector: Selector) => {
      const { fields, identity } = shapeOf(selector)
      return [Object.keys(fields.fields), identity]
    }
    assert.deepStrictEqual(outline({ kind: "call", function: "function f()" }), [
      ["kind", "name", "signature", "from", "to", "value", "args", "status", "transaction", "block"],
      ["block.number", "block.hash", "transaction.index", "to", "signature", "args"],
    ])
    assert.deepStrictEqual(outline({ kind: "transaction" }), [
      ["kind", "from", "to", "value", "input", "status", "creates", "transaction", "block"],
      ["block.number", "block.hash", "transaction.index", "transaction.hash"],
    ])
    assert.deepStrictEqual(outline({ kind: "block" }), [
      ["kind", "block"],
      ["block.number", "block.hash"],
    ])
  })
})

describe("selectors that make no sense", () => {
  const one = addressOf(1)
  const refused: ReadonlyArray<readonly [what: string, written: unknown, ...problems: ReadonlyArray<RegExp>]> = [
    ["another kind", { kind: "log" }, /^kind: must be "event", "call", "transaction" or "block", not "log"$/],
    ["no kind", { event: TRANSFER }, /^kind: is missing; it must be "event"/],
    ["a key of another kind", { kind: "call", event: TRANSFER }, /^event: is not a known key/],
    ["no event", { kind: "event" }, /^event: is missing; expected a signature such as event Transfer.*or abi/],
    ["no function", { kind: "call" }, /^function: is missing; expected a signature such as function transfer/],
    ["both forms", { kind: "event", event: TRANSFER, abi: [TRANSFER] }, /^event: event and abi are both given/],
    ["an empty list", { kind: "event", event: [] }, /^event: the list is empty/],
    ["an ABI without events", { kind: "event", abi: ["function f()"] }, /^abi: it has no event$/],
    ["an ABI without functions", { kind: "call", abi: [transferJson] }, /^abi: it has no function$/],
    ["a line that is no declaration", { kind: "event", abi: [TRANSFER, "Transfer"] }, /^abi.1: 'Transfer' is no decl/],
    ["a broken struct", { kind: "event", abi: ["struct S { nope a; }", "event E(S s)"] }, /^abi.0: .*nope/, /^abi.1: /],
    ["every broken signature", { kind: "event", event: ["event E(", TRANSFER, "f()"] }, /^event.0: /, /^event.2: /],
    ["a function for an event", { kind: "event", event: "function f()" }, /^event: .*does not begin with 'event'/],
    ["a broken function", { kind: "call", function: "function f(uint7 a)" }, /^function: .*uint7/],
    [
      "JSON that is no ABI",
      {
        kind: "event",
        abi: [
          { type: "event", name: "1E", inputs: [] },
          { type: "event", name: "A" },
          { type: "event", name: "B", inputs: [{ name: "x", type: "uint7" }] },
          { type: "event", name: "C", inputs: [{ name: "0", type: "uint8" }, null] },
          { type: "event", name: "D", inputs: [{ name: "t", type: "tuple[]" }] },
          { type: "event", name: "E", inputs: [{ name: "t", type: "bytes33" }] },
          { type: "event", name: "F", inputs: [null] },
          { type: "event", name: "G", inputs: [{ name: "t", type: "function" }] },
        ],
      },
      /^abi.0: "1E" is no name of an event$/,
      /^abi.1: event A: the inputs should be a list/,
      /^abi.2: event B: "uint7" in its inputs is no ABI type$/,
      /^abi.3: event C: "0" in its inputs is no name of a parameter$/,
      /^abi.4: event D: the components of t should be a list/,
      /^abi.5: event E: "bytes33"/,
      /^abi.6: event F: nothing in its inputs is no ABI type$/,
      /^abi.7: the type of 't' \(function\) is not supported$/,
    ],
    [
      "tuples without end",
      {
        kind: "event",
        abi: [
          { type: "event", name: "E", inputs: [nested(20)] },
          { type: "event", name: "F", inputs: [nested(500)] },
        ],
      },
      /^abi.0: 't' is nested deeper than 16 levels/,
      /^abi.1: event F: its tuples are nested too deep$/,
    ],
    [
      "arrays without end",
      { kind: "event", event: `event E(uint${"[]".repeat(40)} a)` },
      /^event: 'a' is nested deeper/,
    ],
    [
      "two events that look alike",
      { kind: "event", event: [TRANSFER, TRANSFER.replace("value", "wad")] },
      /^event.1: Transfer\(address,address,uint256\) is listed before with other names/,
    ],
    [
      "two anonymous events that look alike",
      { kind: "event", address: one, event: [NOTE, "event B(uint indexed a, uint indexed b) anonymous"] },
      /^event.1: its logs look like those of Note/,
    ],
    ["an anonymous event anywhere", { kind: "event", event: NOTE }, /^address: is missing: Note is anonymous/],
    [
      "too many indexed arguments",
      {
        kind: "event",
        address: one,
        event: [
          "event A(uint indexed a, uint indexed b, uint indexed c, uint indexed d) anonymous",
          "event B(uint indexed a, uint indexed b, uint indexed c, uint indexed d)",
        ],
      },
      /^event.1: 4 parameters are indexed; an event can have 3$/,
    ],
    [
      "two functions whose calls look alike",
      { kind: "call", function: ["function collate_propagate_storage(bytes16 x)", "function burn(uint256 x)"] },
      /^function.1: calls of it look like those of collate_propagate_storage\(bytes16\): both begin with 0x42966c68/,
    ],
    [
      "a function with other names",
      { kind: "call", function: ["function burn(uint256 x)", "function burn(uint256 y)"] },
      /^function.1: burn\(uint256\) is listed before with other names/,
    ],
    [
      "addresses that are none",
      { kind: "transaction", from: [one, "0x12"], to: "me" },
      /^from.1: '0x12' is no address/,
      /^to: 'me' is no address/,
    ],
    ["a receiver of creations", { kind: "transaction", to: one, creation: true }, /^creation: .*has no 'to'/],
    ["an amount that is none", { kind: "transaction", min_value: "1 ether" }, /^min_value: expected an amount of wei/],
    ["a negative amount", { kind: "transaction", min_value: -1 }, /^min_value: expected an amount of wei/],
    [
      "filters of arguments that nodes cannot choose by",
      { kind: "event", event: [TRANSFER, APPROVAL], args: { from: one, value: 5 } },
      /^args.value: 'value' is not indexed in Transfer.*compare args.value in the predicate/,
      /^args.from: Approval \(event.1\) has no argument 'from'; its indexed ones are owner, spender/,
      /^args.value: 'value' is not indexed in Approval/,
    ],
    [
      "values that no argument has",
      {
        kind: "event",
        event: "event E(address indexed a, int8 indexed b, bytes4 indexed c)",
        args: { a: ["0x12", one], b: [127, 128, -129, "x", 1.5], c: [] },
      },
      /^args.a.0: "0x12" is no address: expected an address$/,
      /^args.b.1: 128 is no int8: expected an integer that fits int8/,
      /^args.b.2: -129/,
      /^args.b.3: "x"/,
      /^args.b.4: 1.5/,
      /^args.c: the list is empty/,
    ],
    [
      "values of other types",
      {
        kind: "event",
        event: "event E(bool indexed a, bytes indexed b, uint8[] indexed c)",
        args: { a: 1, b: "text", c: "0x01" },
      },
      /^args.a: 1 is no bool: expected true or false$/,
      /^args.b: "text" is no bytes: expected 0x and hex digits$/,
      /^args.c: "0x01" is no uint8\[\]: expected 0x and the 64 hex digits of its hash/,
    ],
  ]
  for (const [what, written, ...messages] of refused)
    it(`are refused with every problem: ${what}`, () => {
      const problems = problemsOf(written)
      assert.strictEqual(problems.length, messages.length, JSON.stringify(problems, null, 1))
      for (const [i, message] of messages.entries()) assert.match(problems[i]!, message)
    })

  function nested(depth: number): object {
    return depth === 0 ? { name: "t", type: "uint8" } : { name: "t", type: "tuple", components: [nested(depth - 1)] }
  }
})
