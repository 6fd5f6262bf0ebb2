import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { Permanent, type Storage, StorageError, Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, endsInTime, transfer, waitForNetwork } from "../faults/support.ts"
import { startProcess } from "../owners/support.ts"
import { lettersOf, waitForEnd, waitForState } from "../taking-back/support.ts"
import { deathOf, held, lettersIn, NO, refuser, startWithLetters } from "./support.ts"

const hour = 3_600_000
const patient = { timeoutMs: hour, retry: { maxAttempts: 8, initialBackoffMs: hour, maxBackoffMs: hour } }

/** A process of its own over a file, with the letters of two transfers. */
const running = Effect.fnUntraced(function* (alter?: (storage: Storage["Service"]) => Partial<Storage["Service"]>) {
  const path = yield* databaseFile
  const feed = new ScriptedFeed()
  feed.append([transfer(1)], [transfer(2)])
  const a = refuser("a", patient)
  const start = startProcess(
    path,
    {
      plugins: [scriptedSource(feed)],
      resources: definitions([a.sink]),
      settings: { drainTimeoutMs: 300 },
    },
    alter,
  )
  const process = yield* start
  yield* waitForEnd(process.runtime, 2)
  const letters = yield* lettersOf(process.runtime)
  return { a, process, letters, start }
})

describe("a replay that is under way when its match is taken back", () => {
  it.live("is finished first: the retraction is heard behind it", () =>
    Effect.gen(function* () {
      const a = refuser("a", patient)
      const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      const { wait, begun, letGo } = held()
      a.answer(({ nonce }) => (nonce === null ? Effect.void : wait))
      const replay = yield* Effect.forkChild(deadLetters.replay(letters[1]!.id))
      yield* begun
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForNetwork(runtime, "it takes back", ({ state }) => state === "INVALIDATING" || state === "DRAINING")
      assert.deepStrictEqual(a.words(), [])
      yield* letGo
      assert.isTrue((yield* Fiber.join(replay)).delivered)
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(a.words(), ["+2", "-2", "+20"])
    }),
  )

  for (const [how, attempt] of [
    ["in an attempt that does not end", Effect.never],
    ["in a back-off", Effect.fail(new Transient({ reason: "busy" }))],
  ] as const) {
    it.live(`is given up ${how}: nothing of it is heard behind the retraction`, () =>
      Effect.gen(function* () {
        const a = refuser("a", patient)
        const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a], {
          settings: { drainTimeoutMs: 200 },
        })
        a.answer(({ nonce }) => (nonce === null ? Effect.void : attempt))
        const replay = yield* Effect.forkChild(deadLetters.replay(letters[1]!.id))
        yield* waitUntil("the attempt began", () => a.offered.length === 1)
        feed.fork(1, "x", [transfer(20)], [])
        const error = yield* Effect.flip(Fiber.join(replay))
        assert.match(error.message, /^network "test" had to stop, to take something back, .*kept as it was/)
        yield* waitForEnd(runtime, 3)
        assert.deepStrictEqual(a.words(), ["-2", "+20"])
        assert.deepStrictEqual((yield* lettersOf(runtime)).map(deathOf), [`1 ${NO}`, `1 ${NO}`])
        assert.deepStrictEqual(
          (yield* lettersOf(runtime)).map(({ whyNot }) => whyNot),
          [null, "RETRACTED"],
        )
      }),
    )
  }

  it.live("holds up an operator's rewind of a paused network no longer than a drain", () =>
    Effect.gen(function* () {
      const a = refuser("a", patient)
      const { runtime, letters, deadLetters } = yield* startWithLetters(2, [a], { settings: { drainTimeoutMs: 200 } })
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      a.answer(({ nonce }) => (nonce === null ? Effect.void : Effect.never))
      const replay = yield* Effect.forkChild(deadLetters.replay(letters[1]!.id))
      yield* waitUntil("the attempt began", () => a.offered.length === 1)
      yield* resourcesOf(runtime).rewindNetwork("test", { primary: 1, secondary: 2 ** 31 - 1 })
      yield* waitUntil("it is retracted", () => a.words().length === 1)
      assert.strictEqual((yield* Effect.flip(Fiber.join(replay)))._tag, "Conflict")
      yield* waitForState(runtime, "PAUSED")
      assert.strictEqual((yield* networkNow(runtime, "test")).checkpoint?.cursor.primary, 1)
    }),
  )
})

describe("a replay that is asked for while its network takes something back", () => {
  it.live("waits until that is done, and is refused if its own match was taken back", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      const { wait, begun, letGo } = held()
      a.answer(({ id, nonce }) => (nonce === null && id.endsWith("-r") ? wait : Effect.void))
      feed.fork(1, "x", [])
      yield* begun
      const replays = [
        yield* Effect.forkChild(deadLetters.replay(letters[0]!.id)),
        yield* Effect.forkChild(Effect.flip(deadLetters.replay(letters[1]!.id))),
      ] as const
      yield* waitForState(runtime, "INVALIDATING")
      assert.strictEqual((yield* Fiber.join(replays[1]))._tag, "NotReplayable")
      yield* letGo
      assert.isTrue((yield* Fiber.join(replays[0])).delivered)
      assert.deepStrictEqual(
        a.offered.map(({ nonce }) => nonce === null),
        [true, false],
      )
    }),
  )
})

describe("a replay that is under way when its network is told to stop", () => {
  it.live("is finished, and what waited is left", () =>
    Effect.gen(function* () {
      const { a, process, letters, start } = yield* running()
      const { wait, begun, letGo } = held()
      a.answer(() => wait)
      const replays = yield* Effect.forEach(letters, ({ id }) =>
        Effect.forkChild(Effect.result(lettersIn(process.runtime).replay(id))),
      )
      yield* begun
      const closing = yield* Effect.forkChild(process.close)
      yield* letGo
      yield* Fiber.join(closing)
      const results = yield* Effect.forEach(replays, Fiber.join)
      assert.deepStrictEqual(
        results.map(({ _tag }) => _tag),
        ["Success", "Failure"],
      )
      assert.deepStrictEqual(a.words(), ["+1"])
      const again = yield* start
      assert.deepStrictEqual((yield* lettersOf(again.runtime)).map(deathOf), [`1 ${NO}`])
    }),
  )

  it.live("is given up when the drain's time is over, and its letter is as it was", () =>
    Effect.gen(function* () {
      const { a, process, letters, start } = yield* running()
      a.answer(() => Effect.never)
      const replay = yield* Effect.forkChild(Effect.flip(lettersIn(process.runtime).replay(letters[0]!.id)))
      yield* waitUntil("it began", () => a.offered.length === 3)
      assert.isTrue(yield* endsInTime(yield* Effect.forkChild(process.close)))
      assert.strictEqual((yield* Fiber.join(replay))._tag, "Conflict")
      a.accept()
      const again = yield* start
      yield* waitForState(again.runtime, "RUNNING")
      assert.deepStrictEqual((yield* lettersOf(again.runtime)).map(deathOf), [`1 ${NO}`, `1 ${NO}`])
      assert.deepStrictEqual(a.words(), [])
    }),
  )
})

describe("a replay whose outcome cannot be written", () => {
  it.live("says so and leaves the letter as it was; replayed again it has the same id and bytes", () =>
    Effect.gen(function* () {
      let fails = true
      const { a, process, letters } = yield* running(({ replayed }) => ({
        replayed: (owner, outcome) =>
          fails
            ? Effect.fail(new StorageError({ operation: "replayed", reason: "gone", retryable: false }))
            : replayed(owner, outcome),
      }))
      a.accept()
      const replay = lettersIn(process.runtime).replay(letters[0]!.id)
      assert.strictEqual((yield* Effect.flip(replay))._tag, "StorageError")
      assert.deepStrictEqual(yield* lettersOf(process.runtime), letters)
      fails = false
      assert.isTrue((yield* replay).delivered)
      assert.deepStrictEqual(a.words(), ["+1", "+1"])
      const [first, second] = a.offered.slice(-2)
      assert.deepStrictEqual([second!.id, second!.body], [first!.id, first!.body])
      assert.lengthOf(yield* lettersOf(process.runtime), 1)
    }),
  )
})

describe("a replay that hears that its receiver is gone while its outcome cannot be written yet", () => {
  it.live("pauses the sink at once, and not the one that was put right meanwhile", () =>
    Effect.gen(function* () {
      const writes = Latch.makeUnsafe(true)
      const { a, process, letters } = yield* running(({ replayed }) => ({
        replayed: (owner, outcome) => Effect.andThen(writes.await, replayed(owner, outcome)),
      }))
      writes.closeUnsafe()
      a.answer(() => new Permanent({ reason: "HTTP 410", gone: true }))
      const replay = yield* Effect.forkChild(lettersIn(process.runtime).replay(letters[0]!.id))
      const state = Effect.map(process.resources.sinks, ([sink]) => sink!.state)
      yield* waitUntil(
        "the sink is paused",
        Effect.map(Effect.orDie(state), (now) => now === "PAUSED"),
      )
      yield* process.resources.putSink({ id: "a", module: "host:a", config: {}, retry: { maxAttempts: 2 } })
      yield* process.resources.resumeSink("a")
      yield* writes.open
      assert.isFalse((yield* Fiber.join(replay)).delivered)
      assert.strictEqual(yield* state, "RUNNING")
      a.accept()
      assert.isTrue((yield* lettersIn(process.runtime).replay(letters[1]!.id)).delivered)
    }),
  )
})

describe("a replay that is under way when a sink of its network is deleted", () => {
  it.live("makes way for it: the letter is as it was, and the refusal says so", () =>
    Effect.gen(function* () {
      const a = refuser("a", patient)
      const b = refuser("b")
      const { runtime, letters, deadLetters } = yield* startWithLetters(1, [a], { others: [b.sink] })
      a.answer(() => Effect.never)
      const replay = yield* Effect.forkChild(Effect.flip(deadLetters.replay(letters[0]!.id)))
      yield* waitUntil("the attempt began", () => a.offered.length === 1)
      yield* resourcesOf(runtime).deleteSink("b")
      assert.match(
        (yield* Fiber.join(replay)).message,
        /^network "test" had to stop, to take something back, or to make way for a change of sinks or monitors.*kept/,
      )
      assert.deepStrictEqual((yield* lettersOf(runtime)).map(deathOf), [`1 ${NO}`])
    }),
  )
})
