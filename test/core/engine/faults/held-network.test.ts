import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Metric } from "effect"
import { Blockwatcher, Transient } from "../../../../core/index.ts"
import { networkNow, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { receiver, waitFor } from "../policies/support.ts"
import { definitions, Gate, transfer } from "./support.ts"

const waiting = Effect.map(
  Metric.snapshot,
  (snapshot) =>
    snapshot.flatMap((metric) =>
      metric.id === "blockwatcher_waiting_seconds" && metric.type === "Gauge" ? [Number(metric.state.value)] : [],
    )[0],
)

const HANGS = /^waits for sink a: an attempt has taken \d+ s so far; the head was seen \d+ s ago$/

describe("a network that a hanging sink holds", () => {
  it.live("names it, also while no attempt has failed, and says how old the head is that it shows", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 1_300 }, (_, i) => [transfer(i)]))
      const delivering = new Gate("closed")
      const a = receiver("a", { timeoutMs: 3_600_000, before: () => delivering.pass })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor(
        "as much waits as may",
        Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents > 1_024),
      )
      yield* waitFor(
        "the sink is named",
        Effect.map(networkNow(runtime, "test"), ({ error }) => error !== null),
      )
      const { state, error } = yield* networkNow(runtime, "test")
      assert.strictEqual(state, "RUNNING")
      assert.match(error!, HANGS)
      assert.isAtLeast((yield* waiting)!, 5)
      assert.match((yield* Context.get(runtime, Blockwatcher).health).networks[0]!.error!, HANGS)

      yield* delivering.open
      yield* waitFor("all is delivered", () => a.told.length === 1_300)
      assert.isNull((yield* networkNow(runtime, "test")).error)
      assert.strictEqual(yield* waiting, 0)
    }),
  )

  it.live("names the attempt that hangs, not one that is made again later", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 1_300 }, (_, i) => [transfer(i)]))
      const hanging = new Gate("closed")
      const a = receiver("a", {
        concurrency: 2,
        timeoutMs: 3_600_000,
        retry: { maxAttempts: 9, initialBackoffMs: 3_600_000, maxBackoffMs: 3_600_000 },
        before: () => {
          if (a.attempts.length === 1) return Effect.fail(new Transient({ reason: "busy" }))
          return a.attempts.length > 5 ? hanging.pass : Effect.void
        },
      })
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([a.sink]),
      })
      yield* waitFor(
        "as much waits as may",
        Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents > 1_024),
      )
      yield* waitFor(
        "the sink is named",
        Effect.map(networkNow(runtime, "test"), ({ error }) => error !== null),
      )
      assert.match((yield* networkNow(runtime, "test")).error!, HANGS)
      yield* hanging.open
    }),
  )
})
