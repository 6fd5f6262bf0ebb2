import { assert, describe, it } from "@effect/vitest"
import { eventRenderer } from "../../../core/model/event-json.ts"
import { FieldMismatch } from "../../../core/model/field-mismatch.ts"
import { type EventShape, type Fields, FORM, type RecordType } from "../../../core/model/fields.ts"

const shapeOf = (fields: RecordType["fields"]): EventShape => ({
  fields: { kind: "record", fields },
  identity: [],
  address: { parse: (text) => text.toLowerCase(), format: (canonical) => `@${canonical}` },
})

const render = (fields: RecordType["fields"], values: Fields): string =>
  JSON.stringify(eventRenderer(shapeOf(fields))(values))

describe("the JSON of an event", () => {
  it("writes each kind as the table of fields says, with keys in the declared order", () => {
    const json = render(
      {
        zero: { kind: "int" },
        name: { kind: "string" },
        data: { kind: "bytes" },
        owner: { kind: "address" },
        ratio: { kind: "double" },
        ok: { kind: "bool" },
        args: {
          kind: "record",
          positional: true,
          fields: {
            to: { kind: "address" },
            from: { kind: "address" },
            values: { kind: "list", items: { kind: "int" } },
          },
        },
        block: { kind: "record", fields: { number: { kind: "number" } } },
      },
      {
        block: { number: 12 },
        args: { from: "0xa", to: "0xb", values: [2n ** 256n - 1n, -1n] },
        ok: true,
        ratio: 0.5,
        owner: "0xc",
        data: "0x00ff",
        name: 'a"b',
        zero: 0n,
      },
    )
    assert.strictEqual(
      json,
      '{"zero":"0","name":"a\\"b","data":"0x00ff","owner":"@0xc","ratio":0.5,"ok":true,' +
        '"args":{"to":"@0xb","from":"@0xa","values":["115792089237316195423570985008687907853269984665640564039457584007913129639935","-1"]},' +
        '"block":{"number":12}}',
    )
  })

  it("writes absent optional fields as null, given as null or not at all, in records and lists too", () => {
    const json = render(
      {
        a: { kind: "int", optional: true },
        b: { kind: "address", optional: true },
        c: { kind: "record", fields: { d: { kind: "int" } }, optional: true },
        e: { kind: "list", items: { kind: "string", optional: true } },
      },
      { a: null, c: null, e: ["x", null] },
    )
    assert.strictEqual(json, '{"a":null,"b":null,"c":null,"e":["x",null]}')
  })

  it("leaves out what the shape does not name", () => {
    assert.strictEqual(render({ a: { kind: "bool" } }, { a: false, secret: "x" }), '{"a":false}')
  })

  it("shows of a record with forms the one that the value names, as if there were no other", () => {
    const args: RecordType = {
      kind: "record",
      fields: { a: { kind: "int" }, b: { kind: "string", optional: true } },
      forms: {
        one: { kind: "record", fields: { a: { kind: "int" } } },
        two: { kind: "record", fields: { b: { kind: "string" }, a: { kind: "int" } } },
      },
    }
    assert.strictEqual(render({ args }, { args: { a: 1n, [FORM]: "one" } as Fields }), '{"args":{"a":"1"}}')
    assert.strictEqual(
      render({ args }, { args: { a: 1n, b: "x", [FORM]: "two" } as Fields }),
      '{"args":{"b":"x","a":"1"}}',
    )
    assert.throws(() => render({ args }, { args: { a: 1n, [FORM]: "three" } as Fields }), /'args'.*one of the forms/)
    assert.throws(() => render({ args }, { args: { a: 1n } }), /'args'.*one of the forms/)
    assert.throws(() => render({ args }, { args: null }), /'args' should be an object/)
  })

  it("keeps a field called __proto__", () => {
    const fields = Object.fromEntries([
      ["a", { kind: "int" }],
      ["__proto__", { kind: "string" }],
    ]) as RecordType["fields"]
    assert.strictEqual(
      render(fields, Object.fromEntries([["a", 1n] as const, ["__proto__", "x"] as const])),
      '{"a":"1","__proto__":"x"}',
    )
  })

  it("says which field does not hold what the shape says, and never the value", () => {
    const cases: ReadonlyArray<readonly [RecordType["fields"], Fields, string]> = [
      [{ args: { kind: "record", fields: { v: { kind: "int" } } } }, { args: { v: "5" } }, "'args.v'"],
      [{ l: { kind: "list", items: { kind: "int" } } }, { l: [1n, null] }, "'l.*'"],
      [{ l: { kind: "list", items: { kind: "int" } } }, { l: "secret" }, "'l'"],
      [{ n: { kind: "number" } }, { n: 2 ** 53 }, "'n'"],
      [{ d: { kind: "double" } }, { d: Number.NaN }, "'d'"],
      [{ s: { kind: "string" } }, {}, "'s'"],
      [{ r: { kind: "record", fields: {} } }, { r: [] }, "'r'"],
      [{ b: { kind: "bool" } }, { b: "secret" }, "'b'"],
      [{ y: { kind: "bytes" } }, { y: 5n }, "'y'"],
      [{ o: { kind: "address" } }, { o: null }, "'o'"],
    ]
    for (const [fields, values, path] of cases) {
      try {
        render(fields, values)
        assert.fail(`${path} was accepted`)
      } catch (error) {
        assert.instanceOf(error, FieldMismatch)
        assert.include(error.message, path)
        assert.notInclude(error.message, "secret")
      }
    }
  })
})
