import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { FieldMismatch } from "../../../core/model/field-mismatch.ts"
import {
  type EventShape,
  type Fields,
  type FieldType,
  type FieldValue,
  FORM,
  type RecordType,
} from "../../../core/model/fields.ts"
import { matchIdDeriver, matchIdEncoder } from "../../../core/model/match-id.ts"
import { decodeMatchId, normalise } from "./match-id-decoder.ts"
import { Generator } from "./field-generator.ts"

const shapeOf = (fields: RecordType["fields"], identity: ReadonlyArray<string>): EventShape => ({
  fields: { kind: "record", fields },
  identity,
  address: { parse: (text) => text, format: (canonical) => canonical },
})

const scope = { network: "devnet", monitor: "large-transfers" }

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

/** Hex digits without the blanks that make them readable. */
const plain = (digits: string): string => digits.replaceAll(" ", "")

const encodeOne = (type: FieldType, value: FieldValue): string => {
  const bytes = hex(
    matchIdEncoder(shapeOf({ x: type }, ["x"]), { network: "", monitor: "" })({ primary: 0, secondary: 0 }, 0, {
      x: value,
    }),
  )
  assert.isTrue(bytes.startsWith(emptyHead), bytes)
  return bytes.slice(emptyHead.length)
}

const emptyHead =
  `${Buffer.from("blockwatcher/match\0").toString("hex")}01` +
  `${"0500000000".repeat(2)}${"030000000000".repeat(3)}00000001`

const block = {
  kind: "record",
  fields: { number: { kind: "number" }, hash: { kind: "bytes" }, timestamp: { kind: "number" } },
} as const

const transfer = shapeOf(
  {
    kind: { kind: "string" },
    signature: { kind: "string" },
    address: { kind: "address" },
    args: {
      kind: "record",
      positional: true,
      fields: { from: { kind: "address" }, to: { kind: "address" }, value: { kind: "int" } },
    },
    log: { kind: "record", fields: { index: { kind: "number" } } },
    transaction: { kind: "record", fields: { hash: { kind: "bytes" }, index: { kind: "number" } } },
    block,
  },
  ["block.number", "block.hash", "log.index", "address", "signature", "args"],
)

const transferFields: Fields = {
  kind: "event",
  signature: "Transfer(address,address,uint256)",
  address: "0x5fbdb2315678afecb367f032d93f642f64180aa3",
  args: {
    from: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    to: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    value: 10n ** 18n,
  },
  log: { index: 3 },
  transaction: { hash: `0x${"11".repeat(32)}`, index: 1 },
  block: { number: 12, hash: `0x${"ab".repeat(32)}`, timestamp: 1_700_000_000 },
}

const logCursor = { primary: 12, secondary: 2 ** 20 + 3 }

const deriveArgs = (args: RecordType, values: Fields, hash: string) =>
  matchIdDeriver(shapeOf({ args, hash: { kind: "bytes" } }, ["hash", "args"]), scope)(logCursor, 0, {
    args: values,
    hash,
  })

const transferId = (network: string, monitor: string, primary: number, secondary: number, index: number) =>
  matchIdDeriver(transfer, { network, monitor })({ primary, secondary }, index, transferFields)

const bad = (type: FieldType, value: FieldValue) =>
  assert.throws(() => encodeOne(type, value), /event field 'x/, `${type.kind} ${String(value)}`)

describe("a match's id", () => {
  it("is that of the form that a value names, whatever other forms there are", () => {
    const one: RecordType = { kind: "record", positional: true, fields: { a: { kind: "int" }, b: { kind: "string" } } }
    const two: RecordType = { kind: "record", positional: true, fields: { a: { kind: "int" } } }
    const both: RecordType = { kind: "record", fields: { a: { kind: "int" } }, forms: { one, two } }
    const hash = `0x${"ab".repeat(32)}`
    const values = { a: 1n, b: "x" }
    assert.strictEqual(deriveArgs(both, { ...values, [FORM]: "one" } as Fields, hash), deriveArgs(one, values, hash))
    assert.strictEqual(deriveArgs(both, { a: 1n, [FORM]: "two" } as Fields, hash), deriveArgs(two, { a: 1n }, hash))
    assert.throws(() => deriveArgs(both, values, hash), /'args'.*one of the forms/)
    assert.throws(() => deriveArgs(both, { ...values, [FORM]: "three" } as Fields, hash), /'args'.*one of the forms/)
  })

  it("is frozen", () => {
    const rich = shapeOf(
      {
        none: { kind: "string", optional: true },
        flags: { kind: "list", items: { kind: "bool" } },
        ratio: { kind: "double" },
        text: { kind: "string" },
        odd: { kind: "string" },
        data: { kind: "bytes" },
        small: { kind: "int" },
        big: { kind: "int" },
        named: { kind: "record", fields: { b: { kind: "int" }, a: { kind: "list", items: { kind: "int" } } } },
        tuple: { kind: "record", positional: true, fields: { b: { kind: "int" }, a: { kind: "string" } } },
      },
      ["none", "flags", "ratio", "text", "odd", "data", "small", "big", "named", "tuple"],
    )
    const richFields: Fields = {
      none: null,
      flags: [true, false],
      ratio: -1.5,
      text: "grüße 🚀",
      odd: "\ud800",
      data: "0x",
      small: -(2n ** 255n),
      big: 2n ** 256n - 1n,
      named: { a: [], b: 0n },
      tuple: { b: 255n, a: "" },
    }
    assert.deepStrictEqual(
      [
        matchIdDeriver(transfer, scope)(logCursor, 0, transferFields),
        matchIdDeriver(transfer, scope)({ primary: -1, secondary: 2_147_483_647 }, 7, transferFields),
        matchIdDeriver(shapeOf({ block }, ["block.number", "block.hash"]), scope)(
          { primary: 12, secondary: 0 },
          0,
          transferFields,
        ),
        matchIdDeriver(shapeOf({ block }, []), scope)({ primary: 12, secondary: 0 }, 0, transferFields),
        matchIdDeriver(rich, { network: "n.1", monitor: "m_2" })(
          { primary: Number.MAX_SAFE_INTEGER, secondary: 1 },
          1,
          richFields,
        ),
      ],
      [
        "d22ad8ba0f7dceb6c445cbb9f0b98e8b9a13db6f24384fe0b21361c86cccea3a",
        "9f726eb519d59d1a93d2bef463fad62cf45a8235a3ec29c49a4e6ae1486d1e08",
        "9c991080125061cc92b261d47fdcee68ecabd3ca420e0861c69554fc792e73b5",
        "b855d91b3e3a613d167d610f79f0ff5ffe70a70399e4c9a58434583ba24b0ad5",
        "ef47b8b9b934f0c9e2a1cf42590fa1edf58d789f5d37627c75b0b3a754eb4b7e",
      ],
    )
  })

  it("hashes an encoding that is frozen, byte for byte", () => {
    const int = { kind: "int" } as const
    const string = { kind: "string" } as const
    assert.strictEqual(encodeOne({ kind: "int", optional: true }, null), "00")
    assert.strictEqual(encodeOne({ kind: "bool" }, false), "01")
    assert.strictEqual(encodeOne({ kind: "bool" }, true), "02")
    assert.strictEqual(encodeOne(int, 0n), "030000000000")
    assert.strictEqual(encodeOne(int, 255n), "030000000001ff")
    assert.strictEqual(encodeOne(int, 256n), "0300000000020100")
    assert.strictEqual(encodeOne(int, -256n), "0301000000020100")
    assert.strictEqual(encodeOne({ kind: "number" }, -1), "03010000000101")
    assert.strictEqual(encodeOne({ kind: "double" }, 1), "043ff0000000000000")
    assert.strictEqual(encodeOne({ kind: "double" }, -0), "040000000000000000")
    assert.strictEqual(encodeOne(string, ""), "0500000000")
    assert.strictEqual(encodeOne(string, "é"), "0500000002c3a9")
    assert.strictEqual(encodeOne(string, "\ud800"), "060000000200d8")
    assert.strictEqual(encodeOne({ kind: "bytes" }, "0x00ff"), "070000000200ff")
    assert.strictEqual(encodeOne({ kind: "address" }, "0xa"), "080500000003307861")
    assert.strictEqual(
      encodeOne({ kind: "list", items: int }, [1n, 0n]),
      plain("0900000002 03000000000101 030000000000"),
    )
    assert.strictEqual(
      encodeOne({ kind: "record", fields: { b: int, a: string } }, { a: "x", b: 0n }),
      plain("0a00000002 050000000161 050000000178 050000000162 030000000000"),
    )
    assert.strictEqual(
      encodeOne({ kind: "record", positional: true, fields: { b: int, a: string } }, { a: "x", b: 0n }),
      plain("0900000002 030000000000 050000000178"),
    )
  })

  it.prop("can be read back from what is hashed, so that no two events share it", { seed: Schema.Int }, ({ seed }) => {
    const generator = new Generator(seed)
    const fields = generator.record(4)
    const names = Object.keys(fields.fields)
    const shape: EventShape = { ...shapeOf({}, []), fields, identity: names }
    const values = generator.fieldsOf(fields)
    const cursor = { primary: generator.below(2 ** 40), secondary: generator.below(2 ** 31) }
    const place = { network: generator.text(), monitor: generator.text() }
    const read = decodeMatchId(matchIdEncoder(shape, place)(cursor, 5, values))
    assert.deepStrictEqual(read, {
      version: 1,
      ...place,
      cursor,
      index: 5,
      values: names.map((name) => normalise(fields.fields[name]!, values[name]!)),
    })
    return true
  })

  it.prop("does not see fields that are no identity", { seed: Schema.Int }, ({ seed }) => {
    const generator = new Generator(seed)
    const enrichment = generator.record(3)
    const shape: EventShape = {
      ...transfer,
      fields: { kind: "record", fields: { added: enrichment, ...transfer.fields.fields } },
    }
    const values = {
      ...transferFields,
      added: generator.fieldsOf(enrichment),
      transaction: { hash: generator.bytes(), index: generator.below(1000) },
      block: { number: 12, hash: `0x${"ab".repeat(32)}`, timestamp: generator.below(2 ** 40) },
    }
    assert.strictEqual(
      matchIdDeriver(shape, scope)(logCursor, 0, values),
      matchIdDeriver(transfer, scope)(logCursor, 0, transferFields),
    )
    return true
  })

  it("does not depend on the names of arguments, on how integers are declared, or on the case of hex digits", () => {
    const first = deriveArgs(
      { kind: "record", positional: true, fields: { from: { kind: "int" }, to: { kind: "number" } } },
      { from: 1n, to: 2 },
      "0xab",
    )
    const second = deriveArgs(
      { kind: "record", positional: true, fields: { src: { kind: "number" }, dst: { kind: "int" } } },
      { dst: 2n, src: 1 },
      "0xAB",
    )
    assert.strictEqual(first, second)
  })

  it("changes with network, monitor, cursor and index", () => {
    const ids = [
      transferId("a", "bc", 1, 2, 3),
      transferId("ab", "c", 1, 2, 3),
      transferId("a", "bc", 12, 2, 3),
      transferId("a", "bc", 1, 3, 3),
      transferId("a", "bc", 1, 2, 4),
    ]
    assert.strictEqual(new Set(ids).size, ids.length)
    for (const one of ids) assert.match(one, /^[0-9a-f]{64}$/)
  })

  it("is null-like, not an error, where a record on the way to an identity field is absent", () => {
    const shape = shapeOf({ a: { kind: "record", optional: true, fields: { b: { kind: "int" } } } }, ["a.b"])
    const derive = matchIdEncoder(shape, scope)
    assert.isTrue(hex(derive(logCursor, 0, { a: null })).endsWith(plain("00000001 00")))
    assert.isTrue(hex(derive(logCursor, 0, {})).endsWith(plain("00000001 00")))
  })

  it("survives an event that is larger than any before, and one that failed half-way", () => {
    const shape = shapeOf({ data: { kind: "bytes" }, n: { kind: "int" } }, ["data", "n"])
    const derive = matchIdDeriver(shape, scope)
    const small = derive(logCursor, 0, { data: "0x01", n: 1n })
    const large = derive(logCursor, 0, { data: `0x${"7f".repeat(100_000)}`, n: 1n })
    assert.throws(() => derive(logCursor, 0, { data: "0x01", n: "1" }), FieldMismatch)
    assert.strictEqual(derive(logCursor, 0, { data: "0x01", n: 1n }), small)
    assert.strictEqual(derive(logCursor, 0, { data: `0x${"7f".repeat(100_000)}`, n: 1n }), large)
    assert.notStrictEqual(small, large)
  })

  it("is refused for identity fields that do not hold what the shape says", () => {
    bad({ kind: "bytes" }, "0x0")
    bad({ kind: "bytes" }, "0xzz")
    bad({ kind: "bytes" }, "ff")
    bad({ kind: "int" }, 1)
    bad({ kind: "int" }, null)
    bad({ kind: "number" }, 0.5)
    bad({ kind: "double" }, Number.POSITIVE_INFINITY)
    bad({ kind: "bool" }, "true")
    bad({ kind: "string" }, 1n)
    bad({ kind: "address" }, null)
    bad({ kind: "list", items: { kind: "int" } }, "1")
    bad({ kind: "list", items: { kind: "int" } }, ["1"])
    bad({ kind: "record", fields: {} }, [])
  })

  it("cannot be compiled from paths that name no field, or from positions that JavaScript reorders", () => {
    assert.throws(() => matchIdDeriver(shapeOf({ block }, ["block.nonce"]), scope), /'block.nonce'.*'nonce'/)
    assert.throws(() => matchIdDeriver(shapeOf({ block }, ["toString"]), scope), /'toString'/)
    const args = { kind: "record", positional: true, fields: { to: { kind: "int" }, 1: { kind: "int" } } } as const
    assert.throws(() => matchIdDeriver(shapeOf({ args }, ["args"]), scope), /'args'.*'1'.*'arg1'/)
  })
})
