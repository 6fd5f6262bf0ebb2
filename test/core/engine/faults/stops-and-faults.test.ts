import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Logger, Metric, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { describe } from "vitest"
import { StorageError } from "../../../../core/index.ts"
import { resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import {
  definitions,
  endsInTime,
  Gate,
  recorder,
  sourceThatRuns,
  startOver,
  transfer,
  waitForInFlight,
  waitForNetwork,
} from "./support.ts"

const corrupt = (operation: string) => Effect.fail(new StorageError({ operation, reason: "corrupt", retryable: false }))

describe("a runtime that is closed", () => {
  it.live("ends a change that waits for the drain", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const scope = yield* Scope.make()
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([{ id: "mine", deliver: () => Effect.never }]),
        settings: { drainTimeoutMs: 300 },
      }).pipe(Scope.provide(scope))
      yield* waitForInFlight(runtime)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* waitForNetwork(runtime, "the network drains", ({ state }) => state === "DRAINING")
      const deleting = yield* Effect.forkChild(resourcesOf(runtime).deleteMonitor("all", { discard: true }))
      assert.isTrue(yield* endsInTime(closing))
      assert.isTrue(yield* endsInTime(deleting))
    }),
  )

  it.live("ends also when a source never lets go of what it holds", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const free = yield* Effect.acquireRelease(Deferred.make<void>(), (free) => Deferred.succeed(free, undefined))
      const plugin = sourceThatRuns(feed, (script, given) =>
        Effect.andThen(
          Effect.addFinalizer(() => Deferred.await(free)),
          script(given),
        ),
      )
      const scope = yield* Scope.make()
      const runtime = yield* startRuntime({
        plugins: [plugin],
        resources: definitions([recorder("mine").sink]),
        settings: { drainTimeoutMs: 100 },
      }).pipe(Scope.provide(scope))
      yield* waitForCheckpoint(runtime, "test", 1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      assert.isTrue(yield* endsInTime(closing))
    }),
  )

  it.live("builds no pipeline again that breaks in its drain", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const delivering = new Gate("closed")
      let claims = 0
      const scope = yield* Scope.make()
      const { runtime } = yield* startOver(
        ({ claim, settle }) => ({
          claim: (network, lease) =>
            Effect.andThen(
              Effect.sync(() => claims++),
              claim(network, lease),
            ),
          settle: (owner, input) => (input.outcomes.length > 0 ? corrupt("settle") : settle(owner, input)),
        }),
        {
          plugins: [scriptedSource(feed)],
          resources: definitions([{ id: "mine", deliver: () => delivering.pass }]),
          settings: { drainTimeoutMs: 2_000 },
        },
      ).pipe(Scope.provide(scope))
      yield* delivering.reached
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* waitForNetwork(runtime, "the network drains", ({ state }) => state === "DRAINING")
      yield* delivering.open
      assert.isTrue(yield* endsInTime(closing))
      assert.strictEqual(claims, 1)
    }),
  )

  it.live("ends without another try while a pipeline waits to be built again", () =>
    Effect.gen(function* () {
      let tries = 0
      const scope = yield* Scope.make()
      const { runtime } = yield* startOver(
        () => ({
          openSlots: () => Effect.suspend(() => (tries++, corrupt("openSlots"))),
        }),
        {
          plugins: [scriptedSource(new ScriptedFeed())],
          resources: definitions([recorder("mine").sink]),
          settings: { drainTimeoutMs: 30_000 },
        },
      ).pipe(Scope.provide(scope))
      yield* waitForNetwork(
        runtime,
        "the pipeline broke three times",
        ({ error }) => tries === 3 && error === "storage: openSlots: corrupt",
      )
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      // The fourth try is two seconds away.
      assert.isTrue(yield* endsInTime(closing, "1500 millis"))
      assert.strictEqual(tries, 3)
    }),
  )
})

describe("a pipeline that breaks", () => {
  it.live("is told once, counted, and built again from its rows, which are sent", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3].map(transfer))
      const { values, sink } = recorder("mine")
      const errors: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => {
        if (logLevel === "Error") errors.push(String(message).split(",")[0]!)
      })
      let breaks = true
      yield* Effect.gen(function* () {
        const { runtime } = yield* startOver(
          ({ settle }) => ({
            settle: (owner, input) => {
              if (!breaks || input.outcomes.length === 0) return settle(owner, input)
              breaks = false
              return corrupt("settle")
            },
          }),
          { plugins: [scriptedSource(feed)], resources: definitions([sink]) },
        )
        yield* waitForCheckpoint(runtime, "test", 1)
        yield* waitForNetwork(runtime, "all is well", ({ state, error }) => state === "RUNNING" && error === null)
        assert.isAbove(values.length, 3)
        assert.deepStrictEqual(values.slice(-3), [1, 2, 3])
        assert.deepStrictEqual(errors, ["the pipeline broke; it is built again from its rows"])
        assert.include(yield* PrometheusMetrics.format(), 'blockwatcher_pipeline_faults_total{network="test"} 1')
      }).pipe(
        Effect.provide(Logger.layer([logger])),
        Effect.provideServiceEffect(
          Metric.MetricRegistry,
          Effect.sync(() => new Map()),
        ),
      )
    }),
  )
})

describe("a fault at any time", () => {
  it.live("finds the hash recorded of every block that has a match in the rows", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const first = Array.from({ length: 150 }, (_, i) => transfer(i))
      feed.append([], first, [transfer(150)])
      const without: Array<number> = []
      let minted = 0
      const { runtime } = yield* startOver(
        ({ mint, anchors }) => ({
          mint: (owner, input) =>
            Effect.tap(mint(owner, input), () =>
              Effect.forEach(new Set(input.matches.map(({ cursor }) => cursor.primary)), (primary) =>
                Effect.map(anchors(owner.network, primary, 1), ([newest]) => {
                  minted++
                  if (newest?.primary !== primary) without.push(primary)
                }),
              ),
            ),
        }),
        { plugins: [scriptedSource(feed)], resources: definitions([recorder("mine").sink], { range: 1 }) },
      )
      yield* waitForCheckpoint(runtime, "test", 3)
      assert.isAtLeast(minted, 3)
      assert.deepStrictEqual(without, [])
    }),
  )
})
