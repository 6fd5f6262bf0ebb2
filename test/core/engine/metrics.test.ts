import { assert, describe, it } from "@effect/vitest"
import { setImmediate } from "node:timers/promises"
import { Context, Effect, Metric } from "effect"
import { TestClock } from "effect/testing"
import { PrometheusMetrics } from "effect/observability"
import { Blockwatcher } from "../../../core/index.ts"
import { resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../support/scripted-source.ts"
import { definitions, fast, transfer } from "./faults/support.ts"

describe("health", () => {
  it.effect("tells of sinks that rest, and what each is owed and since when", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2), transfer(3)])
      const sink = { id: "mine", buffer: "DURABLE" as const, deliver: () => Effect.never }
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      yield* resourcesOf(runtime).pauseSink("mine")
      const { health } = Context.get(runtime, Blockwatcher)
      const owes = Effect.map(health, ({ networks }) => networks[0]!.owes)
      while ((yield* owes)[0]?.deliveries !== 3) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => setImmediate())
      }
      const [before] = yield* owes
      assert.strictEqual(before!.sink, "mine")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* owes, [{ ...before!, oldestSeconds: before!.oldestSeconds + 2 }])
      const { sinks } = yield* health
      assert.deepStrictEqual(sinks, [
        { id: "mine", state: "PAUSED", error: "by an operator; resumeSink lets it go on" },
      ])
    }),
  )
})

describe("metrics", () => {
  it.live("follow an event from its time to its delivery, and what is taken back", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2), transfer(3)])
      let attempts = 0
      const sink = {
        id: "mine",
        retry: fast,
        deliver: () => (++attempts === 1 ? Effect.die("once") : Effect.void),
      }
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([sink]),
        settings: { journalDepth: 1 },
      })
      yield* waitForCheckpoint(runtime, "test", 2)
      feed.fork(0, "x", [], [], [])
      yield* waitForCheckpoint(runtime, "test", 3)
      const lines = (yield* PrometheusMetrics.format()).split("\n")
      assert.includeMembers(lines, [
        'blockwatcher_events_total{network="test"} 3',
        'blockwatcher_matches_total{network="test",monitor="all"} 3',
        'blockwatcher_delivery_attempts_failed_total{network="test",sink="mine"} 1',
        'blockwatcher_deliveries_total{network="test",sink="mine",kind="match",outcome="delivered"} 3',
        'blockwatcher_deliveries_total{network="test",sink="mine",kind="retracted",outcome="delivered"} 3',
        'blockwatcher_event_delivered_seconds_count{network="test",sink="mine"} 3',
        'blockwatcher_matches_ended_total{network="test"} 3',
        'blockwatcher_invalidations_total{network="test"} 1',
        'blockwatcher_journal_gap_total{network="test"} 1',
        'blockwatcher_rewinds_refused_total{network="test"} 0',
        'blockwatcher_checkpoint{network="test"} 3',
        'blockwatcher_head{network="test"} 3',
        'blockwatcher_in_flight_events{network="test"} 0',
      ])
    }).pipe(
      Effect.provideServiceEffect(
        Metric.MetricRegistry,
        Effect.sync(() => new Map()),
      ),
    ),
  )
})
