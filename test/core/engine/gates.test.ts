import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { DeadLetters, Feed, type Match, type SinkEvent } from "../../../core/index.ts"
import { networkNow, resourcesOf, type Runtime, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, type ScriptedEvent, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers, databaseFile } from "./faults/support.ts"
import { waitForEnd } from "./taking-back/support.ts"

const at = (seconds: number | null, value: number): ScriptedEvent => ({
  name: "Transfer",
  value: BigInt(value),
  time: seconds === null ? null : seconds * 1000,
})

const valueOf = ({ event }: Match): number => Number((event["args"] as { readonly value: string }).value)

/** The value of a match, those of a digest. */
const valuesOf = (event: SinkEvent): unknown => {
  if (event.type === "retracted") return event.match_id
  return event.type === "digest" ? event.matches.map(valueOf) : valueOf(event)
}

/** Runs the monitor `all` with a gate over a feed; answers the runtime and what its sink was sent: a digest is a list. */
const gated = Effect.fnUntraced(function* (feed: ScriptedFeed, gate: object, predicate: string | null = null) {
  const sent: Array<unknown> = []
  const runtime = yield* startRuntime({
    plugins: [scriptedSource(feed)],
    resources: {
      networks: [{ id: "test", module: "scripted", config: {} }],
      sinks: [{ id: "mine", deliver: (event) => Effect.sync(() => sent.push(valuesOf(event))) }],
      monitors: [allTransfers(["mine"], { gate, predicate })],
    },
  })
  return { runtime, sent }
})

const reasons = (runtime: Runtime) =>
  Effect.map(Context.get(runtime, DeadLetters).list({ network: "test", first: 10, after: null }), ({ items }) =>
    items.map(({ node }) => node.reason),
  )

const errorOf = (runtime: Runtime) => Effect.map(resourcesOf(runtime).monitors, ([monitor]) => monitor!.error)

describe("hits that a gate holds", () => {
  it.live("are no deliveries, hold up nothing, outlast restarts, and so does the digest that they become", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      const sent: Array<string> = []
      let hangs = true
      const start = startRuntime({
        path,
        plugins: [scriptedSource(feed)],
        settings: { drainTimeoutMs: 20 },
        resources: {
          networks: [{ id: "test", module: "scripted", config: {} }],
          sinks: [
            {
              id: "mine",
              deliver: (_, { id, body }) =>
                Effect.andThen(
                  Effect.sync(() => sent.push(`${id} ${body}`)),
                  hangs ? Effect.never : Effect.void,
                ),
            },
          ],
          monitors: [allTransfers(["mine"], { gate: { type: "threshold", count: 3, windowMs: 3_600_000 } })],
        },
      })
      feed.append([at(0, 1)], [at(60, 2)], [])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const runtime = yield* start
          yield* waitForEnd(runtime, 3)
          assert.deepInclude(yield* networkNow(runtime, "test"), { inFlightEvents: 0, deadLetterCount: 0 })
          const { items } = yield* Context.get(runtime, Feed).matches({ first: 10, after: null })
          assert.deepStrictEqual(items, [])
        }),
      )
      feed.append([at(120, 3)])
      yield* Effect.scoped(Effect.andThen(start, () => waitUntil("the digest is under way", () => sent.length === 1)))
      hangs = false
      const runtime = yield* start
      yield* waitUntil("it is sent again", () => sent.length === 2)
      const [first, again] = sent
      assert.strictEqual(again, first)
      const { matches } = JSON.parse(first!.slice(first!.indexOf("{"))) as { readonly matches: ReadonlyArray<Match> }
      assert.deepStrictEqual(matches.map(valueOf), [1, 2, 3])
      assert.deepStrictEqual(yield* reasons(runtime), [])
    }),
  )
})

describe("a gate", () => {
  it.live("of type threshold lets so many hits of a key through together, if they span no more than the window", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      // Keys are the last digit. Those of 1 span the window exactly, those of 2 a second more, until a third joins.
      feed.append([at(0, 11), at(0, 12)], [at(60, 21), at(61, 22)], [at(61, 32), at(62, 31)])
      const { runtime, sent } = yield* gated(feed, {
        type: "threshold",
        count: 2,
        windowMs: 60_000,
        by: "args.value % 10",
      })
      yield* waitForCheckpoint(runtime, "test", 3)
      yield* waitUntil("both are sent", () => sent.length === 2)
      assert.deepStrictEqual(sent, [
        [11, 21],
        [22, 32],
      ])
    }),
  )

  it.live("of type max_once lets the first of a window through: one that begins with it, its end left out", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([at(0, 1), at(0, 2)], [at(59, 3)], [at(60, 4), at(119, 5)], [at(120, 6)])
      const { runtime, sent } = yield* gated(feed, { type: "max_once", windowMs: 60_000 })
      yield* waitForCheckpoint(runtime, "test", 4)
      yield* waitUntil("three are sent", () => sent.length === 3)
      assert.deepStrictEqual(sent, [1, 4, 6])
      assert.deepStrictEqual(yield* reasons(runtime), [])
    }),
  )

  it.live("never judges an event without a time: a dead letter says so, and the monitor", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([at(null, 1), at(1, 2)])
      const { runtime, sent } = yield* gated(feed, { type: "max_once", windowMs: 1 })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(yield* reasons(runtime), ["permanent: gate: the event has no time"])
      assert.strictEqual(yield* errorOf(runtime), "gate: the event has no time")
      yield* waitUntil("the other one is sent", () => sent.length === 1)
      assert.deepStrictEqual(sent, [2])
    }),
  )

  it.live("whose key cannot be computed counts the event nowhere: a dead letter says why, and the monitor", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([at(0, 0), at(0, 1)], [at(0, 0), at(0, 1)])
      const gate = { type: "threshold", count: 2, windowMs: 1, by: "10 / args.value" }
      const { runtime, sent } = yield* gated(feed, gate)
      yield* waitForCheckpoint(runtime, "test", 2)
      const reason = "gate.by: division by zero (line 1, column 1)"
      assert.deepStrictEqual(yield* reasons(runtime), [
        `permanent: predicate: ${reason}`,
        `permanent: predicate: ${reason}`,
      ])
      assert.strictEqual(yield* errorOf(runtime), reason)
      yield* waitUntil("the digest is sent", () => sent.length === 1)
      assert.deepStrictEqual(sent, [[1, 1]])
    }),
  )

  it.live("sees only what its predicate lets through, and a predicate that fails is no hit", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([at(0, 1), at(0, 0), at(0, 5)], [at(0, 6)])
      const gate = { type: "threshold", count: 2, windowMs: 1 }
      const { runtime, sent } = yield* gated(feed, gate, "10 / args.value < 5")
      yield* waitForCheckpoint(runtime, "test", 2)
      yield* waitUntil("the digest is sent", () => sent.length === 1)
      assert.deepStrictEqual(sent, [[5, 6]])
      assert.deepStrictEqual(yield* reasons(runtime), ["permanent: predicate: division by zero (line 1, column 1)"])
    }),
  )
})
