import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf } from "../../../support/runtime.ts"
import { waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, transfer, waitForNetwork } from "../faults/support.ts"
import { lettersOf, waitForEnd, waitForState } from "../taking-back/support.ts"
import { deathOf, NO, refuser, startWithLetters, waitForLetters } from "./support.ts"

/** What takes longer than this waits for a sink that hangs for an hour. */
const SOON_MS = 10_000

describe("a bulk replay", () => {
  it.live("sends the oldest letters of what it is asked for, as many as it is asked for, in order", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime, deadLetters } = yield* startWithLetters(6, [a, b])
      a.accept()
      b.accept()
      assert.deepInclude(yield* deadLetters.replayAll({ network: "test", sink: "a" }, 4), {
        delivered: 4,
        failed: 0,
        skipped: 0,
        whySkipped: [],
      })
      assert.deepStrictEqual([a.words(), b.words()], [["+1", "+2", "+3", "+4"], []])
      assert.strictEqual((yield* deadLetters.replayAll({ network: "test" }, 100)).delivered, 8)
      assert.deepStrictEqual(
        [a.words().slice(4), b.words()],
        [
          ["+5", "+6"],
          ["+1", "+2", "+3", "+4", "+5", "+6"],
        ],
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).deadLetterCount, 0)
    }),
  )

  it.live(
    "gives a sink that is down one letter's retries and three more attempts, and leaves its other letters as they were",
    () =>
      Effect.gen(function* () {
        const a = refuser("a", { retry: { maxAttempts: 3, initialBackoffMs: 1, maxBackoffMs: 1 } })
        const b = refuser("b")
        const { runtime, deadLetters } = yield* startWithLetters(20, [a, b])
        a.answer(() => new Transient({ reason: "down" }))
        b.accept()
        const { endCursor, ...counts } = yield* deadLetters.replayAll({ network: "test" }, 1_000)
        assert.deepStrictEqual(counts, {
          delivered: 20,
          failed: 4,
          skipped: 16,
          whySkipped: [
            `sink "a" is down: the letters before this one used up their attempts; replay the rest when it answers again`,
          ],
        })
        assert.strictEqual(a.offered.length, 6)
        const down = "transient: down"
        assert.deepStrictEqual((yield* lettersOf(runtime)).map(deathOf), [
          `4 ${down}`,
          ...Array<string>(3).fill(`2 ${down}`),
          ...Array<string>(16).fill(`1 ${NO}`),
        ])
        a.accept()
        // Those that were left are sent when it goes on; those that failed are not.
        assert.deepInclude(yield* deadLetters.replayAll({ network: "test" }, 1_000, endCursor), {
          delivered: 16,
          skipped: 0,
          endCursor: null,
        })
      }),
  )

  it.live("passes over what cannot be replayed", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { feed, runtime, deadLetters } = yield* startWithLetters(4, [a])
      feed.fork(2, "x", [], [])
      // Two matches that were taken back, and their retractions.
      yield* waitForLetters(runtime, 6)
      feed.append([transfer(30)])
      yield* waitForLetters(runtime, 7)
      a.accept()
      assert.deepInclude(yield* deadLetters.replayAll({ network: "test" }, 3), {
        delivered: 3,
        failed: 0,
        skipped: 4,
        whySkipped: [
          "a letter cannot be replayed: its match was taken back since, so the receiver must not get it any more; discard the letter",
          "a letter cannot be replayed: it is a retraction, which offerRetractions sends again, with all others that died at its sink",
        ],
      })
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+30"])
    }),
  )

  it.live("lets others in between its letters", () =>
    Effect.gen(function* () {
      const total = 50
      const a = refuser("a")
      const { letters, deadLetters } = yield* startWithLetters(total, [a])
      const begun = Latch.makeUnsafe(false)
      a.answer(() => Effect.andThen(begun.open, Effect.yieldNow))
      const all = yield* Effect.forkChild(deadLetters.replayAll({ network: "test" }, total))
      yield* begun.await
      yield* deadLetters.replay(letters.at(-1)!.id)
      assert.isBelow(a.words().length, 5)
      assert.deepInclude(yield* Fiber.join(all), {
        delivered: total - 1,
        failed: 0,
        skipped: 1,
        whySkipped: ["a letter is none any more: it was replayed or discarded meanwhile"],
      })
    }),
  )

  it.live(
    "of 10,000 letters at a sink that hangs holds up no invalidation, no change of the sink, no pause and no stop",
    () =>
      Effect.gen(function* () {
        const total = 10_000
        const hour = 3_600_000
        const a = refuser("a", { timeoutMs: hour })
        const b = refuser("b")
        b.accept()
        const inTime = Effect.fnUntraced(function* (what: string, done: Effect.Effect<unknown, unknown>) {
          const since = performance.now()
          yield* Effect.orDie(done)
          assert.isBelow(performance.now() - since, SOON_MS, what)
        })
        const stopping = Effect.gen(function* () {
          const { feed, runtime, deadLetters } = yield* startWithLetters(1, [a], {
            others: [b.sink],
            settings: { drainTimeoutMs: 200 },
          })
          const resources = resourcesOf(runtime)
          // Each of them dies as it is matched, which takes the least time.
          yield* resources.putMonitor(allTransfers(["a"], { predicate: "1 / (args.value - args.value) > 0" }))
          feed.append(Array.from({ length: total - 1 }, (_, i) => transfer(i + 2)))
          yield* waitForLetters(runtime, total)
          yield* resources.putMonitor(allTransfers(["b"]))
          a.offered.length = 0
          a.answer(({ nonce }) => (nonce === null ? Effect.void : Effect.never))
          const replay = yield* Effect.forkDetach(deadLetters.replayAll({ network: "test" }, total))
          yield* waitUntil("the first hangs", () => a.offered.length === 1)
          feed.append([transfer(total + 1)])
          yield* inTime("deliveries", waitForEnd(runtime, 3))
          feed.fork(2, "x", [transfer(total + 2)], [])
          yield* inTime("an invalidation", waitForEnd(runtime, 4))
          assert.deepStrictEqual(b.words(), [`+${total + 1}`, `-${total + 1}`, `+${total + 2}`])
          yield* waitUntil("another hangs", () => a.offered.length === 2)
          yield* inTime(
            "a change of the sink",
            Effect.andThen(
              resources.putSink({ id: "a", module: "host:a", config: {}, retry: { maxAttempts: 2 } }),
              waitUntil("it is tried anew", () => a.offered.length === 3),
            ),
          )
          yield* inTime("a pause", Effect.andThen(resources.pauseNetwork("test"), waitForState(runtime, "PAUSED")))
          yield* inTime(
            "a pause of the sink",
            Effect.andThen(resources.pauseSink("a"), Effect.asVoid(Fiber.await(replay))),
          )
          assert.deepInclude(yield* Fiber.join(replay), { delivered: 0, failed: 0, skipped: total })
          yield* waitForNetwork(runtime, "all are kept", ({ deadLetterCount }) => deadLetterCount === total)
          yield* resources.resumeSink("a")
          yield* Effect.forkDetach(deadLetters.replayAll({ network: "test" }, total))
          yield* waitUntil("the first hangs", () => a.offered.length === 4)
          return performance.now()
        })
        const since = yield* Effect.scoped(stopping)
        assert.isBelow(performance.now() - since, SOON_MS, "a stop")
      }),
    60_000,
  )
})
