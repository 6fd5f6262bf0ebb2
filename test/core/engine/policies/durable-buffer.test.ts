import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"
import { DeadLetters, Permanent, Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, Gate, transfer } from "../faults/support.ts"
import { lettersOf, waitForState } from "../taking-back/support.ts"
import { receiver, waitFor, waitForInFlight, waitForLetters, waitForWords } from "./support.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

const plus = (from: number, to: number) => range(from, to).map((value) => `+${value}`)

/** A sink with a durable buffer that is down until it is said to be up. */
const downAtFirst = (over: Parameters<typeof receiver>[1] = {}) => {
  const health = { up: false }
  const a = receiver("a", {
    buffer: "DURABLE",
    retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 4 },
    before: () => (health.up ? Effect.void : Effect.fail(new Transient({ reason: "down" }))),
    ...over,
  })
  return { ...a, health }
}

const bufferAge = Effect.map(
  Metric.snapshot,
  (snapshot) =>
    snapshot.flatMap((metric) =>
      metric.id === "blockwatcher_buffer_oldest_seconds" && metric.type === "Gauge" ? [Number(metric.state.value)] : [],
    )[0],
)

describe("a durable buffer", () => {
  it.live("lets its network go on while its sink is down, and its deliveries be retried without end", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...range(1, 3_000).map((value) => [transfer(value)]))
      const a = downAtFirst()
      const b = receiver("b")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink, b.sink]), monitors: [allTransfers(["a", "b"])] },
      })
      yield* waitForCheckpoint(runtime, "test", 3_000)
      yield* waitForWords(b, plus(1, 3_000))
      yield* waitFor("it was retried often", () => a.attempts.length > 5)
      assert.deepStrictEqual([...new Set(a.attempts)], ["+1"])
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
      assert.isNull((yield* networkNow(runtime, "test")).error)
      a.health.up = true
      yield* waitForWords(a, plus(1, 3_000))
      feed.append([transfer(3_001)])
      yield* waitForWords(a, plus(1, 3_001))
    }),
  )

  it.live("keeps what the sink refuses for good as dead letters", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2, 3].map(transfer))
      const a = receiver("a", {
        buffer: "DURABLE",
        before: (what) => (what === "+2" ? Effect.fail(new Permanent({ reason: "no" })) : Effect.void),
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForWords(a, ["+1", "+3"])
      assert.deepStrictEqual(yield* waitForLetters(runtime, 1), [{ what: "+2", attempts: 1, reason: "permanent: no" }])
    }),
  )

  it.live("is still there after a restart, and a stop does not wait for it", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append(range(1, 1_000).map(transfer))
      const delivering = new Gate("closed")
      const slow = receiver("a", { buffer: "DURABLE", before: () => delivering.pass })
      const scope = yield* Scope.make()
      const options = { path, plugins: [scriptedSource(feed)] }
      const first = yield* startRuntime({ ...options, resources: definitions([slow.sink]) }).pipe(Scope.provide(scope))
      yield* waitForCheckpoint(first, "test", 1)
      yield* delivering.reached
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* waitForState(first, "DRAINING")
      yield* delivering.open
      yield* Fiber.join(closing)
      // What was offered with the first.
      assert.isAtMost(slow.told.length, 64)
      const a = receiver("a", { buffer: "DURABLE" })
      yield* startRuntime({ ...options, resources: definitions([a.sink]) })
      yield* waitForWords({ words: () => [...slow.words(), ...a.words()] }, plus(1, 1_000))
    }),
  )

  it.live("has retractions sent where they belong: behind what they take back, before what replaces it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer), [3, 4].map(transfer))
      const a = downAtFirst()
      a.health.up = true
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForWords(a, ["+1", "+2", "+3", "+4"])
      a.health.up = false
      feed.append([5, 6].map(transfer))
      yield* waitFor("5 was tried", () => a.attempts.includes("+5"))
      // The network takes back what it must, and goes on, while the sink cannot be told.
      feed.fork(1, "b", [7].map(transfer), [8].map(transfer), [9].map(transfer))
      yield* waitForCheckpoint(runtime, "test", 4)
      assert.strictEqual(a.told.length, 4)
      a.health.up = true
      // 5 was tried, and 6 was to follow at once: it may have been heard of.
      yield* waitForWords(a, ["+1", "+2", "+3", "+4", "-3", "-4", "-5", "-?", "+7", "+8", "+9"])
    }),
  )

  it.live("has a retraction that died sent again when it is offered, among what else it sends", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      let refuses = true
      const a = receiver("a", {
        buffer: "DURABLE",
        before: (what) =>
          refuses && what.startsWith("-") ? Effect.fail(new Permanent({ reason: "no" })) : Effect.void,
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForWords(a, ["+1", "+2"])
      feed.fork(0, "b", [transfer(3)])
      yield* waitForWords(a, ["+1", "+2", "+3"])
      yield* waitForLetters(runtime, 2)
      refuses = false
      assert.strictEqual(yield* Context.get(runtime, DeadLetters).offerRetractions("test", "a"), 2)
      feed.append([transfer(4)])
      yield* waitFor("all is told", () => a.told.length === 6)
      assert.deepStrictEqual(
        a.words().filter((what) => what.startsWith("-")),
        ["-1", "-2"],
      )
    }),
  )

  it.live("taken on by a sink that is down: rows of before hold the checkpoint, and those of now do not", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 3).map(transfer))
      const delivering = new Gate("closed")
      const a = receiver("a", { before: () => delivering.pass })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* delivering.reached
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, buffer: "DURABLE" })
      feed.append(range(4, 6).map(transfer))
      yield* waitFor("what follows is read", () => feed.emitted === 2)
      yield* waitForInFlight(runtime, 3)
      yield* delivering.open
      yield* waitForCheckpoint(runtime, "test", 2)
      yield* waitForWords(a, plus(1, 6))
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, buffer: "MEMORY" })
      feed.append([transfer(7)])
      yield* waitForCheckpoint(runtime, "test", 3)
      yield* waitForWords(a, plus(1, 7))
    }),
  )

  it.live("is not given up for a throttle that would make dead letters of what waits", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 5).map(transfer))
      const a = downAtFirst()
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("it was tried", () => a.attempts.length > 0)
      const { putSink } = resourcesOf(runtime)
      const memory = { id: "a", module: "host:a", config: {}, buffer: "MEMORY" }
      const throttle = { maxDeliveries: 1, windowMs: 3_600_000 }
      assert.strictEqual(
        (yield* Effect.flip(putSink({ ...memory, throttle }))).message,
        'sink "a" cannot give up its durable buffer yet: network "test" still owes it deliveries, of which its throttle would make dead letters; wait until they are sent; DURABLE without a throttle, they go sooner',
      )
      a.health.up = true
      yield* putSink(memory)
      yield* waitForWords(a, plus(1, 5))
      yield* putSink({ ...memory, buffer: "DURABLE" })
      yield* putSink({ ...memory, throttle })
      feed.append([6, 7].map(transfer))
      yield* waitForWords(a, plus(1, 6))
      assert.strictEqual((yield* waitForLetters(runtime, 1))[0]!.what, "+7")
    }),
  )

  it.live("frees a network at once that waited for the sink", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...range(1, 2_000).map((value) => [transfer(value)]))
      const delivering = new Gate("closed")
      const a = receiver("a", { before: () => delivering.pass })
      const b = receiver("b")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink, b.sink]), monitors: [allTransfers(["a", "b"])] },
      })
      yield* delivering.reached
      yield* waitFor("as much waits as may", () => b.told.length > 1_024)
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, buffer: "DURABLE" })
      yield* waitForWords(b, plus(1, 2_000))
      assert.deepStrictEqual(a.told, [])
      yield* delivering.open
      yield* waitForWords(a, plus(1, 2_000))
      yield* waitForCheckpoint(runtime, "test", 2_000)
    }),
  )

  it.effect("shows how long its oldest delivery waits", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([1, 2].map(transfer))
      const a = downAtFirst({ retry: { maxAttempts: 1, initialBackoffMs: 60_000, maxBackoffMs: 60_000 } })
      yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("it was tried", () => a.attempts.length > 0)
      assert.strictEqual(yield* bufferAge, 0)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* bufferAge, 3_600)
      a.health.up = true
      yield* TestClock.adjust("1 minute")
      yield* waitForWords(a, ["+1", "+2"])
      yield* waitFor(
        "nothing waits",
        Effect.map(bufferAge, (age) => age === 0),
      )
    }),
  )
})
