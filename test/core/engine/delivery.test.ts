import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Scope } from "effect"
import { describe } from "vitest"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { TestClock } from "effect/testing"
import {
  DeadLetters,
  type DeliveryError,
  Feed,
  type HostSink,
  Permanent,
  RateLimited,
  type SinkEvent,
  TooLarge,
  Transient,
} from "../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { receiver, waitFor, waitForLetters } from "./policies/support.ts"

const transfer = (value: number) => ({ name: "Transfer", value: BigInt(value) })

const fast = { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 2 }

const valueOf = (event: SinkEvent): number =>
  event.type === "match" ? Number((event.event["args"] as { value: string }).value) : Number.NaN

const resources = (sink: HostSink, monitor: object = {}, config: object = {}) => ({
  networks: [{ id: "test", module: "scripted", config }],
  monitors: [{ id: "all", network: "test", selector: { name: "Transfer" }, sinks: [sink.id], ...monitor }],
  sinks: [sink],
})

const deadLetters = (runtime: Context.Context<DeadLetters>) =>
  Context.get(runtime, DeadLetters).list({ network: "test", first: 50, after: null })

describe("deliveries", () => {
  it.live("that use up their attempts are kept as dead letters, and the checkpoint passes them", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1), transfer(2)], [transfer(3)])
      const attempts: Array<number> = []
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: resources({
          id: "mine",
          retry: fast,
          deliver: (event) =>
            Effect.suspend(() => {
              attempts.push(valueOf(event))
              return valueOf(event) === 2 ? Effect.fail(new Transient({ reason: "not now" })) : Effect.void
            }),
        }),
      })
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.deepStrictEqual(attempts, [1, 2, 2, 2, 3])
      const { items, totalCount } = yield* deadLetters(runtime)
      assert.strictEqual(totalCount, 1)
      const letter = items[0]!.node
      assert.strictEqual(letter.reason, "transient: not now")
      assert.strictEqual(letter.attempts, 3)
      assert.strictEqual(letter.monitor, "all")
      assert.strictEqual((yield* networkNow(runtime, "test")).deadLetterCount, 1)
    }),
  )

  it.live("die at once or after all attempts, by the class of their last failure; a defect is a failed attempt", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3, 4, 5].map(transfer))
      const failures: Record<string, Effect.Effect<void, DeliveryError>> = {
        "+1": Effect.fail(new Transient({ reason: "down" })),
        "+2": Effect.fail(new RateLimited({ reason: "busy", retryAfterMs: null })),
        "+3": Effect.fail(new Permanent({ reason: "no" })),
        "+4": Effect.fail(new TooLarge({ reason: "1 MB" })),
        "+5": Effect.die(new Error("a bug in the sink")),
      }
      const a = receiver("a", { retry: fast, before: (what) => failures[what]! })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: resources(a.sink) })
      assert.deepStrictEqual(yield* waitForLetters(runtime, 5), [
        { what: "+1", attempts: 3, reason: "transient: down" },
        { what: "+2", attempts: 3, reason: "rate_limited: busy" },
        { what: "+3", attempts: 1, reason: "permanent: no" },
        { what: "+4", attempts: 1, reason: "permanent: too large: 1 MB" },
        { what: "+5", attempts: 3, reason: "transient: defect in the sink: a bug in the sink" },
      ])
      yield* waitForCheckpoint(runtime, "test", 1)
    }),
  )

  it.effect("that are rate limited are not attempted before the receiver said", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      let limited = true
      const a = receiver("a", {
        retry: fast,
        before: () => (limited ? Effect.fail(new RateLimited({ reason: "busy", retryAfterMs: 60_000 })) : Effect.void),
      })
      yield* startRuntime({ plugins: [scriptedSource(feed)], resources: resources(a.sink) })
      yield* waitFor("it was attempted", () => a.attempts.length === 1)
      limited = false
      yield* TestClock.adjust(59_999)
      assert.deepStrictEqual(a.words(), [])
      yield* TestClock.adjust(1)
      yield* waitFor("it is told", () => a.told.length === 1)
    }),
  )

  it.live("that hang are ended at the sink's limit", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: resources({ id: "mine", retry: fast, timeoutMs: 20, deliver: () => Effect.never }),
      })
      yield* waitForCheckpoint(runtime, "test", 1)
      const { items } = yield* deadLetters(runtime)
      assert.strictEqual(items[0]!.node.reason, "transient: no outcome within 20 ms")
    }),
  )

  it.live("a predicate that fails is never 'false': a dead letter, shown at the monitor, not in the feed", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(0), transfer(5), { name: "Transfer", value: 1n, broken: true }, transfer(20)])
      const seen: Array<number> = []
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: resources(
          { id: "mine", deliver: (event) => Effect.sync(() => seen.push(valueOf(event))) },
          { predicate: "100 / args.value < 10" },
        ),
      })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(seen, [20])
      const { items } = yield* deadLetters(runtime)
      assert.strictEqual(items.length, 1)
      assert.match(items[0]!.node.reason, /^permanent: predicate: .*zero/)
      assert.isTrue(items[0]!.node.replayable)
      const [monitor] = yield* resourcesOf(runtime).monitors
      assert.match(monitor!.error ?? "", /zero/)
      const page = yield* Context.get(runtime, Feed).matches({ first: 10, after: null })
      assert.deepStrictEqual(
        page.items.map(({ match }) => match.event["args"]),
        [{ value: "20" }],
      )
    }),
  )

  it.live("left open by a stop are sent by the next start with the same id and bytes, before anything newer", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "blockwatcher-")), "test.db")
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 50 }, (_, i) => [transfer(2 * i), transfer(2 * i + 1)]))
      const first: Array<string> = []
      const stuck = yield* Deferred.make<{ readonly id: string; readonly body: string }>()
      const scope = yield* Scope.make()
      const runtime = yield* startRuntime({
        path,
        settings: { drainTimeoutMs: 50 },
        plugins: [scriptedSource(feed)],
        resources: resources({
          id: "mine",
          deliver: (_, { id, body }) =>
            Effect.suspend(() => {
              if (first.length < 30) return Effect.sync(() => first.push(body))
              return Effect.andThen(Deferred.succeed(stuck, { id, body }), Effect.never)
            }),
        }),
      }).pipe(Scope.provide(scope))
      const open = yield* Deferred.await(stuck)
      yield* waitUntil(
        "all is minted",
        Effect.map(networkNow(runtime, "test"), ({ inFlightEvents }) => inFlightEvents === 70),
      )
      yield* Scope.close(scope, Exit.void)

      feed.append([transfer(100)])
      const second: Array<string> = []
      const ids: Array<string> = []
      const restarted = yield* startRuntime({
        path,
        plugins: [scriptedSource(feed)],
        resources: resources({
          id: "mine",
          deliver: (event, { body, id }) =>
            Effect.sync(() => {
              assert.strictEqual(event.type, "match")
              second.push(body)
              ids.push(id)
            }),
        }),
      })
      yield* waitForCheckpoint(restarted, "test", 51)
      const values = (bodies: ReadonlyArray<string>) => bodies.map((body) => valueOf(JSON.parse(body)))
      assert.deepStrictEqual(
        values(first),
        Array.from({ length: 30 }, (_, i) => i),
      )
      assert.deepStrictEqual(
        values(second),
        Array.from({ length: 71 }, (_, i) => i + 30),
      )
      assert.deepStrictEqual({ id: ids[0], body: second[0] }, open)
      assert.strictEqual(new Set(ids).size, 71)
      // What is in rows is not read again, though the checkpoint lies before it.
      assert.strictEqual(feed.emitted, 6)
    }),
  )

  it.live("to a slow sink hold the source back, and another network goes on", () =>
    Effect.gen(function* () {
      const slow = new ScriptedFeed()
      const quick = new ScriptedFeed()
      const blocks = Array.from({ length: 5_000 }, (_, i) => [transfer(i)])
      slow.append(...blocks)
      quick.append(...blocks)
      const gate = yield* Deferred.make<void>()
      const delivered = { slow: 0, quick: 0 }
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(slow, "slow"), scriptedSource(quick, "quick")],
        resources: {
          networks: [
            { id: "slow", module: "slow", config: {} },
            { id: "quick", module: "quick", config: {} },
          ],
          monitors: [
            { id: "a", network: "slow", selector: { name: "Transfer" }, sinks: ["slow"] },
            { id: "b", network: "quick", selector: { name: "Transfer" }, sinks: ["quick"] },
          ],
          sinks: [
            {
              id: "slow",
              deliver: () =>
                Effect.andThen(
                  Deferred.await(gate),
                  Effect.sync(() => delivered.slow++),
                ),
            },
            { id: "quick", deliver: () => Effect.sync(() => delivered.quick++) },
          ],
        },
      })
      yield* waitForCheckpoint(runtime, "quick", 5_000)
      const held = yield* networkNow(runtime, "slow")
      assert.isAbove(held.inFlightEvents, 0)
      assert.isBelow(held.inFlightEvents, 1_500)
      assert.isBelow(slow.emitted * 10, 2_000)
      assert.strictEqual(delivered.quick, 5_000)
      yield* Deferred.succeed(gate, undefined)
      yield* waitForCheckpoint(runtime, "slow", 5_000)
      assert.strictEqual(delivered.slow, 5_000)
    }),
  )

  it.live("go to a sink that was put anew at once, in the middle of its back-off", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      let failed = 0
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: resources({
          id: "mine",
          retry: { maxAttempts: 100, initialBackoffMs: 3_600_000, maxBackoffMs: 3_600_000 },
          deliver: () =>
            Effect.suspend(() => (failed++ === 0 ? Effect.fail(new Transient({ reason: "down" })) : Effect.void)),
        }),
      })
      yield* waitUntil("a first failure", () => failed === 1)
      yield* resourcesOf(runtime).putSink({ id: "mine", module: "host:mine", config: {}, retry: fast })
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.strictEqual(failed, 2)
    }),
  )
})
