import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import {
  Action,
  Blockwatcher,
  DefinitionInvalid,
  EventType,
  layerSqlite,
  Match,
  Provider,
  type Repeat,
} from "../../../core/index.ts"
import { Deposited, Noted } from "./contract/support.ts"

/** The problems that a definition is refused for, as `path: message`. */
const refused = (define: () => unknown): ReadonlyArray<string> => {
  try {
    define()
  } catch (error) {
    if (error instanceof DefinitionInvalid) return error.problems.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return assert.fail("it should have been refused")
}

const operation = (name: string, repeat: Repeat) =>
  Provider.operation({ name, repeat, input: Schema.String, output: Schema.String, call: Effect.succeed })

const run = () => Effect.void

describe("a call that may never be repeated", () => {
  const pay = operation("pay", "never")

  it("is refused beside another changing call of its action, whatever that one is", () => {
    for (const other of [operation("book", "keyed"), operation("mail", "never")]) {
      const problems = refused(() => Action.make({ name: "pays", on: Noted, calls: { pay, other }, run }))
      assert.match(
        problems[0]!,
        /^calls\.pay: may never be repeated, so it must be the only call .* not one of pay, other;/,
      )
      assert.match(problems[0]!, /put the others into an action of their own, on an event that this one emits$/)
    }
  })

  it("may stand beside look-ups, and keyed calls beside each other", () => {
    const look = operation("look", "safe")
    assert.doesNotThrow(() => Action.make({ name: "pays", on: Noted, calls: { pay, look }, run }))
    const [one, two] = [operation("one", "keyed"), operation("two", "keyed")]
    assert.doesNotThrow(() => Action.make({ name: "books", on: Noted, calls: { one, two, look }, run }))
  })
})

describe("a definition that is not valid", () => {
  it("is refused with all that is wrong", () => {
    assert.deepStrictEqual(
      refused(() => EventType.make({ name: "retracted", version: 0, schema: Schema.String })),
      [`name: "retracted" is what monitors' events are called`, "version: must be an integer from 1 on, not 0"],
    )
    assert.deepStrictEqual(
      refused(() => Match.of("", Schema.String, { version: 1.5 })),
      ["monitor: must be the id of a monitor, not empty", "version: must be an integer from 1 on, not 1.5"],
    )
    assert.lengthOf(
      refused(() => operation("with spaces", "sometimes" as Repeat)),
      2,
    )
    const problems = refused(() =>
      Action.make({
        name: "",
        on: [Noted, Noted],
        calls: { pay: operation("pay", "never"), book: operation("book", "keyed") },
        retry: { maxAttempts: 0 },
        timeoutMs: 3_600_001,
        run,
      }),
    )
    assert.sameMembers(
      problems.map((problem) => problem.split(":")[0]!),
      ["name", "on", "calls.pay", "retry.maxAttempts", "timeoutMs"],
    )
  })

  it.live("stops the start when two actions have one name", () =>
    Effect.gen(function* () {
      const twice = [Noted, Deposited].map((on) => Action.make({ name: "acts", on, run }))
      const options = { storage: layerSqlite({ path: ":memory:" }), actions: twice }
      const error = yield* Effect.flip(Layer.build(Blockwatcher.layer(options)))
      assert.instanceOf(error, DefinitionInvalid)
      assert.include(error.message, "acts: is the name of two actions; deliveries are told apart by it")
    }),
  )
})
