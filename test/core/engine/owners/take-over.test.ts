import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { networkNow, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, Gate, transfer, waitForInFlight } from "../faults/support.ts"
import { Sent, startProcess, waitForState } from "./support.ts"

/** More than the second in which a process that stands by looks again, and less than any lease. */
const SECONDS_MS = 5_000

const ready = Effect.gen(function* () {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  const sent = new Sent()
  const start = (name: string, before: Effect.Effect<void> = Effect.void) =>
    startProcess(path, {
      plugins: [scriptedSource(feed)],
      resources: definitions([sent.sink(name, { before })]),
      settings: { drainTimeoutMs: 50 },
    })
  return { feed, sent, start }
})

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R | Scope.Scope> =>
  Effect.suspend(() => {
    const since = performance.now()
    return Effect.map(effect, () => performance.now() - since)
  })

describe.concurrent("a network that two processes share", () => {
  it.live("is run by the first; the other takes it over within seconds when that one ends, with what it owed", () =>
    Effect.gen(function* () {
      const { feed, sent, start } = yield* ready
      feed.append([transfer(1)], [transfer(2), transfer(3)], [transfer(4)])
      const away = new Gate("closed")
      let attempts = 0
      const first = yield* start(
        "first",
        Effect.suspend(() => (attempts++ < 2 ? Effect.void : away.pass)),
      )
      yield* away.reached
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      assert.include(["RUNNING", "STARTING"], (yield* networkNow(first.runtime, "test")).state)
      yield* first.close
      const tookMs = yield* timed(waitForState(second.runtime, "RUNNING"))
      assert.isBelow(tookMs, SECONDS_MS)
      yield* waitForCheckpoint(second.runtime, "test", 3)
      assert.deepStrictEqual(sent.values, [1, 2, 3, 4])
      assert.deepStrictEqual(sent.changed, [])
      assert.deepStrictEqual(
        sent.deliveries.map(({ by }) => by),
        ["first", "first", "second", "second"],
      )
      feed.append([transfer(5)])
      yield* waitUntil("the new owner goes on", () => sent.values.includes(5))
    }),
  )

  it.live("shows at the one that stands by why nothing is wrong: no error, and the owner's checkpoint", () =>
    Effect.gen(function* () {
      const { feed, start } = yield* ready
      feed.append([transfer(1)])
      yield* start("first")
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      feed.append([transfer(2)])
      yield* waitForCheckpoint(second.runtime, "test", 2)
      assert.deepInclude(yield* networkNow(second.runtime, "test"), {
        state: "STANDBY",
        error: null,
        inFlightEvents: 0,
      })
    }),
  )

  it.live("keeps where its monitors took effect, whoever runs it", () =>
    Effect.gen(function* () {
      const { feed, start } = yield* ready
      feed.append([], [])
      const first = yield* start("first")
      yield* waitForCheckpoint(first.runtime, "test", 2)
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      const more = { id: "more", network: "test", selector: { name: "Transfer" }, sinks: ["mine"] }
      yield* first.resources.putMonitor(more)
      feed.append([transfer(1)], [])
      yield* waitForCheckpoint(first.runtime, "test", 4)
      const effective = (at: typeof first) =>
        Effect.map(at.resources.monitors, (monitors) => monitors.map(({ id, effectiveFrom }) => [id, effectiveFrom]))
      const known = yield* effective(first)
      assert.strictEqual((known[1]![1] as { primary: number }).primary, 2)
      // Also while it stands by.
      yield* waitUntil(
        "the other shows it",
        Effect.map(Effect.orDie(effective(second)), (shown) => JSON.stringify(shown) === JSON.stringify(known)),
      )
      yield* first.close
      yield* waitForState(second.runtime, "RUNNING")
      assert.deepStrictEqual(yield* effective(second), known)
      // An edit of what does not decide what matches leaves it where it is.
      yield* second.resources.putMonitor({ ...more, sinks: [] })
      feed.append([])
      yield* waitForCheckpoint(second.runtime, "test", 5)
      assert.deepStrictEqual(yield* effective(second), known)
    }),
  )

  it.live("is not taken from its owner while a delivery takes long", () =>
    Effect.gen(function* () {
      const { feed, sent, start } = yield* ready
      feed.append([transfer(1)])
      const away = new Gate("closed")
      const first = yield* start("first", away.pass)
      yield* waitForInFlight(first.runtime)
      const second = yield* start("second")
      yield* waitForState(second.runtime, "STANDBY")
      const watching = yield* Effect.forkChild(waitForState(second.runtime, "RUNNING"))
      yield* Effect.sleep("2500 millis")
      assert.isUndefined(watching.pollUnsafe())
      yield* Fiber.interrupt(watching)
      yield* away.open
      yield* waitForCheckpoint(second.runtime, "test", 1)
      assert.deepStrictEqual(
        sent.deliveries.map(({ by }) => by),
        ["first"],
      )
    }),
  )
})
