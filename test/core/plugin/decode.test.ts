import { Effect, Result, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { MonitorDefinition, SinkDefinition } from "../../../core/model/resource.ts"
import { decodeConfig } from "../../../core/plugin/decode-config.ts"
import { SecretReference } from "../../../core/plugin/secrets.ts"

const problems = (
  schema: Schema.Codec<any, any>,
  input: unknown,
  sensitive?: ReadonlyArray<string>,
): Readonly<Record<string, string>> =>
  Result.match(decodeConfig(schema, input, sensitive), {
    onSuccess: () => ({}),
    onFailure: (found) => Object.fromEntries(found.map(({ path, message }) => [path, message])),
  })

const natural = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))

const Config = Schema.Struct({
  chain_id: Schema.Int.check(Schema.isGreaterThan(0)),
  urls: Schema.Array(Schema.NonEmptyString).check(Schema.isMinLength(1)),
  confirmations: Schema.optionalKey(Schema.Union([natural, Schema.Literals(["safe", "finalized"])])),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  url_secret: Schema.optionalKey(SecretReference),
  gate: Schema.optionalKey(
    Schema.NullOr(
      Schema.Union([
        Schema.Struct({ type: Schema.Literal("threshold"), count: natural }),
        Schema.Struct({ type: Schema.Literal("max_once"), window_ms: natural }),
      ]),
    ),
  ),
})
const valid = { chain_id: 1, urls: ["http://127.0.0.1"] }

const gate = (value: unknown) => problems(Config, { ...valid, gate: value })

describe("decodeConfig", () => {
  it("gives the decoded value, with its defaults", () => {
    const sink = { id: "a", module: "log", config: {} }
    expect(Result.getOrThrow(decodeConfig(SinkDefinition, sink))).toMatchObject({
      concurrency: 1,
      buffer: "MEMORY",
      retry: { maxAttempts: 8 },
    })
  })

  it("reports every problem at once, with its dotted path", () => {
    expect(
      problems(Config, { chain_id: 1.5, urls: ["", 7], confirmations: "soon", headers: { a: 1 }, x: 1 }),
    ).toStrictEqual({
      chain_id: "must be an integer greater than 0, not 1.5",
      "urls.0": 'must be a string that is not empty, not ""',
      "urls.1": "must be a string that is not empty, not 7",
      confirmations: 'must be an integer between 0 and 100, "safe" or "finalized", not "soon"',
      "headers.a": "must be a string, not 1",
      x: "is not a known key; known are chain_id, urls, confirmations, headers, url_secret, gate",
    })
  })

  it.each([
    ["chain-id", "chain_id"],
    ["chainId", "chain_id"],
    ["url", "urls"],
    ["confirmation", "confirmations"],
    ["confrimations", "confirmations"],
  ])("asks whether %s was meant to be %s", (key, meant) => {
    expect(problems(Config, { ...valid, [key]: 1 })).toStrictEqual({
      [key]: `is not a known key; did you mean "${meant}"?`,
    })
  })

  it("says what is required where a key is missing", () => {
    expect(problems(Config, {})).toStrictEqual({
      chain_id: "is missing; it must be an integer greater than 0",
      urls: "is missing; it must be a list of at least one entry",
    })
    expect(problems(Config, { chain_id: 1, urls: [] })).toStrictEqual({
      urls: "must be a list of at least one entry, not an empty list",
    })
    expect(problems(Config, [])).toStrictEqual({ "": "must be an object, not an empty list" })
    expect(problems(Config, null)).toStrictEqual({ "": "must be an object, not null" })
  })

  it("follows the form of a union that was meant", () => {
    expect(gate({ type: "threshold", count: -1, windowms: 1 })).toStrictEqual({
      "gate.count": "must be an integer between 0 and 100, not -1",
      "gate.windowms": "is not a known key; known are type, count",
    })
    expect(gate({ type: "other" })).toStrictEqual({
      "gate.type": 'must be "threshold" or "max_once", not "other"',
    })
    expect(gate({})).toStrictEqual({ "gate.type": 'is missing; it must be "threshold" or "max_once"' })
    expect(gate(5)).toStrictEqual({
      gate: 'must be an object whose type is "threshold" or "max_once" or null, not 5',
    })
  })

  it("uses a schema's own words", () => {
    const OneOf = Schema.Struct({ a: Schema.optionalKey(Schema.String), b: Schema.optionalKey(Schema.String) }).check(
      Schema.makeFilter((value) => (value.a === undefined) !== (value.b === undefined) || "needs one of a and b"),
    )
    expect(problems(Schema.Struct({ inner: OneOf }), { inner: {} })).toStrictEqual({ inner: "needs one of a and b" })
    expect(problems(MonitorDefinition, { id: "-", network: "n", selector: {}, sinks: [] })).toStrictEqual({
      id: `must be 1 to 128 letters, digits, '-', '_' or '.', starting with a letter or digit, not "-"`,
    })
    expect(problems(Schema.Struct({ every: Schema.DurationFromString }), { every: "soon" })).toStrictEqual({
      every: 'must be a valid Duration string, not "soon"',
    })
  })

  it("leaves out that an optional key may be absent, and prefers a member's own words", () => {
    const defaulted = Schema.Int.pipe(Schema.withDecodingDefault(Effect.succeed(1)))
    const start = Schema.Union([
      natural,
      Schema.String.check(Schema.isPattern(/^latest$/, { message: 'expected "latest"' })),
    ])
    expect(problems(Schema.Struct({ a: defaulted, b: start }), { a: "x", b: "y" })).toStrictEqual({
      a: 'must be an integer, not "x"',
      b: 'expected "latest"',
    })
  })

  it("never shows what is or may be secret", () => {
    const shown = JSON.stringify([
      problems(Config, { ...valid, url_secret: "hunter2-pasted" }),
      problems(Schema.Struct({ key: Schema.RedactedFromValue(Schema.String.check(Schema.isMinLength(99))) }), {
        key: "hunter2-redacted",
      }),
      problems(Config, { ...valid, headers: "Bearer hunter2" }, ["headers.*"]),
      problems(Config, { ...valid, urls: "https://hunter2@host" }, ["urls.*"]),
      problems(Config, { ...valid, api_key: "hunter2-unknown" }),
      problems(Config, { ...valid, urls: "https://host/v2/hunter2" }),
      problems(Config, { ...valid, confirmations: "wss://user:hunter2@host/" }),
    ])
    expect(shown).not.toContain("hunter2")
    expect(shown).toContain("a reference: env:NAME or file:PATH, not this string (hidden)")
    expect(shown).toContain("https://host/***")
  })

  it("shortens what is long", () => {
    expect(problems(Config, { ...valid, confirmations: "x".repeat(500) })["confirmations"]).toMatch(/not "x{60}…"$/)
  })

  it("refuses every key where a schema has none", () => {
    expect(problems(Schema.Struct({}), { a: 1, b: 2 })).toStrictEqual({
      a: "is not a known key: no keys are accepted here",
      b: "is not a known key: no keys are accepted here",
    })
    expect(problems(Schema.Struct({}), "text")).toStrictEqual({ "": 'must be an object, not "text"' })
    expect(problems(Schema.Struct({}), {})).toStrictEqual({})
  })

  it("handles tuples, records with checked names and recursive schemas", () => {
    expect(problems(Schema.Tuple([Schema.String, Schema.Boolean]), ["a"])).toStrictEqual({
      "1": "is missing; it must be true or false",
    })
    const names = Schema.Record(
      Schema.String.check(Schema.isPattern(/^[a-z]+$/, { expected: "lower-case letters" })),
      Schema.Int,
    )
    expect(problems(names, { A: 1 })).toStrictEqual({ A: "is not accepted as a name: it must be lower-case letters" })
    interface Tree {
      readonly children: ReadonlyArray<Tree>
    }
    const Tree: Schema.Codec<Tree> = Schema.Struct({ children: Schema.Array(Schema.suspend(() => Tree)) })
    expect(problems(Tree, { children: [{ children: [{}] }, 1] })).toStrictEqual({
      "children.0.children.0.children": "is missing; it must be a list",
      "children.1": "must be an object, not 1",
    })
  })
})
