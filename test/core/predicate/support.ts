import { assert } from "@effect/vitest"
import type { EventShape, Fields, FieldType, RecordType } from "../../../core/model/fields.ts"
import { compilePredicate, PredicateFailure } from "../../../core/predicate/predicate.ts"

const record = (fields: RecordType["fields"], optional = false): RecordType => ({ kind: "record", fields, optional })
const list = (items: FieldType): FieldType => ({ kind: "list", items })

/** Addresses are `0x` and 40 hex digits, in lower case when canonical. */
export const shape: EventShape = {
  identity: [],
  address: { parse: (text) => (/^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : null), format: (text) => text },
  fields: record({
    name: { kind: "string" },
    note: { kind: "string", optional: true },
    args: record({
      value: { kind: "int" },
      other: { kind: "int" },
      price: { kind: "double" },
      ok: { kind: "bool" },
      data: { kind: "bytes" },
      from: { kind: "address" },
      to: { kind: "address" },
      ids: list({ kind: "int" }),
      owners: list({ kind: "address" }),
      hashes: list({ kind: "bytes" }),
      in: { kind: "int" },
      orders: list(record({ maker: { kind: "address" }, amount: { kind: "int" } })),
    }),
    call: record({ gas: { kind: "number", optional: true }, inner: record({ depth: { kind: "number" } }, true) }, true),
    block: record({ number: { kind: "number" }, positions: list({ kind: "number" }) }),
  }),
}

export const ALICE = `0x${"aA".repeat(20)}`
export const BOB = `0x${"bB".repeat(20)}`

/** The arguments of an event, in the form that sources give, with some of them replaced. */
export const argsWith = (changes: Fields = {}): Fields => ({
  value: 5n,
  other: 7n,
  price: 1.5,
  ok: true,
  data: "0xa9059cbb00",
  from: ALICE.toLowerCase(),
  to: BOB.toLowerCase(),
  ids: [1n, 2n, 3n],
  owners: [ALICE.toLowerCase()],
  hashes: ["0xab", "0xcd"],
  in: 1n,
  orders: [
    { maker: ALICE.toLowerCase(), amount: 10n },
    { maker: BOB.toLowerCase(), amount: 20n },
  ],
  ...changes,
})

/** An event with some of its arguments and fields replaced. */
export const eventWith = (args: Fields = {}, changes: Fields = {}): Fields => ({
  name: "Transfer",
  note: null,
  args: argsWith(args),
  call: null,
  block: { number: 19_000_000, positions: [1, 2] },
  ...changes,
})

/** The compiled predicate; a problem fails the test. */
export const compiled = (source: string): ((fields: Fields) => boolean) => {
  const predicate = compilePredicate(source, shape)
  if ("problems" in predicate) assert.fail(`${source}: ${predicate.problems.map(({ message }) => message).join("; ")}`)
  return predicate.evaluate
}

/** Whether a predicate holds for an event. */
export const holds = (source: string, event: Fields = eventWith()): boolean => compiled(source)(event)

/** The messages of a predicate that is refused. */
export const problemsOf = (source: string): ReadonlyArray<string> => {
  const predicate = compilePredicate(source, shape)
  if (!("problems" in predicate)) assert.fail(`${source} was accepted`)
  for (const { path } of predicate.problems) assert.strictEqual(path, "")
  return predicate.problems.map(({ message }) => message)
}

/** The message of the failure of a predicate that cannot be evaluated. */
export const failureOf = (source: string, event: Fields = eventWith()): string => {
  const evaluate = compiled(source)
  try {
    evaluate(event)
  } catch (error) {
    assert.instanceOf(error, PredicateFailure)
    return error.message
  }
  return assert.fail(`${source} did not fail`)
}
