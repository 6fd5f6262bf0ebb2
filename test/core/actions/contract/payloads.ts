import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Action } from "../../../../core/actions/action.ts"
import { EventType } from "../../../../core/actions/event-type.ts"
import { start } from "../program.ts"
import type { Test } from "./support.ts"

const version = <A, I>(number: number, schema: Schema.Codec<A, I>) =>
  EventType.make({ name: "order", version: number, schema })

const first = version(1, Schema.Struct({ item: Schema.String, count: Schema.BigInt }))
/** Reads what the first one wrote. */
const second = version(
  2,
  Schema.Struct({ item: Schema.String, count: Schema.BigInt, note: Schema.optionalKey(Schema.String) }),
)
/** Does not. */
const third = version(3, Schema.Struct({ item: Schema.Int, count: Schema.BigInt, place: Schema.String }))
/** Reads everything. */
const fourth = version(4, Schema.Struct({ item: Schema.Unknown, count: Schema.BigInt }))

const reading = (type: EventType<"order", any>, read: Array<unknown>) =>
  Action.make({ name: "reads", on: type, run: ({ event }) => Effect.sync(() => void read.push(event.payload)) })

/** The part of the contract about payloads over changes of their types. */
export const payloads = (test: Test): void => {
  test("a payload of an older version is read by the present schema", (world) =>
    Effect.gen(function* () {
      const read: Array<unknown> = []
      const { actions, until } = yield* start(world, [reading(second, read)])
      yield* actions.emit(first, { item: "a", count: 2n ** 90n })
      yield* until("succeeded", "reads")
      assert.deepStrictEqual(read, [{ item: "a", count: 2n ** 90n }])
    }))

  test("what this program does not read is parked, with the rule and the field and no value, until one does", (world) =>
    Effect.gen(function* () {
      const read: Array<unknown> = []
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { actions, until } = yield* start(world, [reading(third, read)])
          yield* actions.emit(first, { item: "secret item", count: 1n })
          assert.deepInclude(yield* until("parked", "reads"), {
            code: "payload_unreadable",
            reason: "payload.item: must be an integer; payload.place: is missing",
          })
          yield* actions.emit(fourth, { item: "b", count: 2n })
          assert.deepInclude(yield* until("parked", "reads", 2), {
            code: "payload_unreadable",
            reason: "it is of version 4; this program's type is of version 3",
          })
        }),
      )
      const { until } = yield* start(world, [reading(fourth, read)])
      yield* until("succeeded", "reads", 2)
      assert.deepStrictEqual(read, [
        { item: "secret item", count: 1n },
        { item: "b", count: 2n },
      ])
    }))

  test("a payload without an encoding is of the first one, and one in an unknown encoding is parked", (world) =>
    Effect.gen(function* () {
      const read: Array<unknown> = []
      const { until, sql, actions } = yield* start(world, [reading(first, read)])
      const write = (id: string, encoding: string) =>
        sql(`insert into blockwatcher_events (id, type, version, encoding, payload, depth, created_at)
          values ('${id}', 'order', 1, ${encoding}, '{"item":"${id}","count":"1"}', 0, ${Date.now()})`).pipe(
          Effect.andThen(
            sql(`insert into blockwatcher_action_deliveries (event_seq, action, state, attempts, due, created_at)
              select seq, 'reads', 'waiting', 0, 0, 0 from blockwatcher_events where id = '${id}'`),
          ),
        )
      yield* write("a", "null")
      yield* write("b", "2")
      yield* until("succeeded", "reads")
      assert.deepStrictEqual(read, [{ item: "a", count: 1n }])
      const parked = yield* until("parked", "reads")
      assert.strictEqual(parked.reason, "it is in encoding 2; this build reads encoding 1")
      // A later build that reads the encoding finds it by itself.
      yield* sql("update blockwatcher_events set encoding = 1")
      yield* actions.retry(parked.id)
      yield* until("succeeded", "reads", 2)
    }))
}
