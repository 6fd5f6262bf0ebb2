import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Permanent, Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, transfer } from "../faults/support.ts"
import { startProcess } from "../owners/support.ts"
import { lettersOf, waitForEnd, waitForState } from "../taking-back/support.ts"
import { deathOf, held, lettersIn, refuser, startWithLetters, waitForLetters } from "./support.ts"

const hour = 3_600_000

describe("a dead letter", () => {
  it.live("keeps its place and its time when its replay fails", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(3, [a])
      a.answer(() => new Permanent({ reason: "still no" }))
      yield* deadLetters.replay(letters[0]!.id)
      assert.deepStrictEqual(yield* lettersOf(runtime), [
        { ...letters[0]!, attempts: 2, reason: "permanent: still no" },
        letters[1]!,
        letters[2]!,
      ])
    }),
  )

  it.live("is as it was when its replay is given up", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(3, [a])
      const attempt = held()
      a.answer(() => attempt.wait)
      const replay = yield* Effect.forkChild(Effect.exit(deadLetters.replay(letters[0]!.id)))
      yield* attempt.begun
      yield* resourcesOf(runtime).pauseSink("a")
      yield* Fiber.join(replay)
      yield* resourcesOf(runtime).resumeSink("a")
      assert.deepStrictEqual(yield* lettersOf(runtime), letters)
    }),
  )

  it.live(
    "stays in the list while it is replayed, and can be acted on when the process ends in the middle, paused or not",
    () =>
      Effect.gen(function* () {
        const path = yield* databaseFile
        const feed = new ScriptedFeed()
        feed.append([transfer(1)], [transfer(2)])
        const a = refuser("a", { timeoutMs: hour })
        const start = (alter?: Parameters<typeof startProcess>[2]) =>
          startProcess(
            path,
            { plugins: [scriptedSource(feed)], resources: definitions([a.sink]), settings: { drainTimeoutMs: 100 } },
            alter,
          )
        // Nothing that its end would write is written any more: as after a kill.
        let killed = false
        const first = yield* start(({ replayed, settle }) => ({
          replayed: (...args) => (killed ? Effect.never : replayed(...args)),
          settle: (...args) => (killed ? Effect.never : settle(...args)),
        }))
        yield* waitForEnd(first.runtime, 2)
        const letters = yield* lettersOf(first.runtime)
        yield* first.resources.pauseNetwork("test")
        yield* waitForState(first.runtime, "PAUSED")
        const attempt = held()
        a.answer(() => attempt.wait)
        const deadLetters = lettersIn(first.runtime)
        yield* Effect.forkDetach(Effect.exit(deadLetters.replay(letters[0]!.id)))
        yield* attempt.begun
        assert.deepStrictEqual(
          (yield* lettersOf(first.runtime)).map(({ id, whyNot }) => [id, whyNot]),
          [
            [letters[0]!.id, "CONFLICT"],
            [letters[1]!.id, null],
          ],
        )
        for (const act of [deadLetters.replay(letters[0]!.id), deadLetters.discard(letters[0]!.id)]) {
          assert.match((yield* Effect.flip(act as Effect.Effect<unknown, Error>)).message, /is being replayed/)
        }
        killed = true
        yield* first.close
        const again = yield* start()
        yield* waitForState(again.runtime, "PAUSED")
        assert.deepStrictEqual(yield* lettersOf(again.runtime), letters)
        assert.strictEqual((yield* networkNow(again.runtime, "test")).deadLetterCount, 2)
        a.accept()
        yield* lettersIn(again.runtime).discard(letters[1]!.id)
        assert.isTrue((yield* lettersIn(again.runtime).replay(letters[0]!.id)).delivered)
        assert.deepStrictEqual(a.words(), ["+1"])
      }),
  )

  for (const first of ["discard", "replay"] as const) {
    it.live(
      `that is discarded and replayed at the same time, the ${first} first, is either gone unsent or delivered`,
      () =>
        Effect.gen(function* () {
          const a = refuser("a")
          const { runtime, letters, deadLetters } = yield* startWithLetters(5, [a])
          a.accept()
          for (const { id } of letters) {
            const before = a.offered.length
            const acts = { discard: Effect.exit(deadLetters.discard(id)), replay: Effect.exit(deadLetters.replay(id)) }
            const { discard, replay } = yield* Effect.all(
              first === "discard" ? acts : { replay: acts.replay, discard: acts.discard },
              { concurrency: "unbounded" },
            )
            assert.notStrictEqual(Exit.isSuccess(discard), Exit.isSuccess(replay))
            assert.strictEqual(a.offered.length - before, Exit.isSuccess(replay) ? 1 : 0)
          }
          assert.deepStrictEqual(yield* lettersOf(runtime), [])
        }),
    )
  }

  it.live("says that it cannot be replayed while its sink is paused or missing", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime } = yield* startWithLetters(1, [a, b])
      const now = Effect.map(lettersOf(runtime), (letters) =>
        letters.map(({ sink, replayable, whyNot }) => `${sink} ${replayable} ${whyNot}`).toSorted(),
      )
      assert.deepStrictEqual(yield* now, ["a true null", "b true null"])
      yield* resourcesOf(runtime).pauseSink("a")
      assert.deepStrictEqual(yield* now, ["a false CONFLICT", "b true null"])
      yield* resourcesOf(runtime).resumeSink("a")
      assert.deepStrictEqual(yield* now, ["a true null", "b true null"])
    }),
  )
})

describe("a bulk replay", () => {
  it.live("is not kept from letters that can be sent by those that cannot, and counts these with their reason", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime, deadLetters } = yield* startWithLetters(3, [a, b])
      b.accept()
      yield* resourcesOf(runtime).pauseSink("a")
      // By small steps, as an operator who empties the queue; each letter is counted once.
      const calls: Array<Effect.Success<ReturnType<typeof deadLetters.replayAll>>> = []
      while (calls.at(-1)?.endCursor !== null) {
        calls.push(yield* deadLetters.replayAll({ network: "test" }, 1, calls.at(-1)?.endCursor ?? null))
      }
      assert.strictEqual(
        calls.reduce((sum, { delivered }) => sum + delivered, 0),
        3,
      )
      assert.strictEqual(
        calls.reduce((sum, { skipped }) => sum + skipped, 0),
        3,
      )
      assert.deepStrictEqual(
        [...new Set(calls.flatMap(({ whySkipped }) => whySkipped))],
        [`sink "a" is paused (by an operator); let it go on with resumeSink, then repeat this`],
      )
      assert.deepInclude(yield* deadLetters.replayAll({ network: "test" }, 2), {
        delivered: 0,
        skipped: 3,
        endCursor: null,
      })
      assert.deepStrictEqual([a.words(), b.words()], [[], ["+1", "+2", "+3"]])
    }),
  )

  it.live("goes on behind letters that failed again, by the cursor that it ended with", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { letters, deadLetters } = yield* startWithLetters(3, [a, b])
      const poison = letters[0]!.matchId
      for (const sink of [a, b]) {
        sink.answer(({ id }) => (id === poison ? new Permanent({ reason: "no" }) : Effect.void))
      }
      let delivered = 0
      let calls = 0
      let after: string | null = null
      do {
        const counts: { readonly delivered: number; readonly endCursor: string | null } = yield* deadLetters.replayAll(
          { network: "test" },
          2,
          after,
        )
        delivered += counts.delivered
        after = counts.endCursor
        calls++
      } while (after !== null)
      assert.deepStrictEqual([delivered, calls], [4, 4])
      const error = yield* Effect.flip(deadLetters.replayAll({ network: "test" }, 2, "x"))
      assert.strictEqual(error._tag, "InvalidPosition")
    }),
  )

  it.live("ends between two letters once its host is about to stop: what was not sent is a letter as before", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(5, [a])
      const attempt = held()
      a.answer(() => attempt.wait)
      const replay = yield* Effect.forkChild(deadLetters.replayAll({ network: "test" }, 10))
      yield* attempt.begun
      yield* deadLetters.endReplays
      yield* attempt.letGo
      assert.deepInclude(yield* Fiber.join(replay), {
        delivered: 1,
        skipped: 4,
        whySkipped: [
          `network "test" stops; what was not sent is a dead letter as before: replay it again when it runs`,
        ],
      })
      assert.deepStrictEqual(yield* lettersOf(runtime), letters.slice(1))
      // Nor does a back-off hold it up.
      assert.match((yield* Effect.flip(deadLetters.replay(letters[1]!.id))).message, /^network "test" stops/)
    }),
  )

  it.live("in a back-off ends with it once its host is about to stop", () =>
    Effect.gen(function* () {
      const a = refuser("a", { retry: { maxAttempts: 9, initialBackoffMs: hour, maxBackoffMs: hour } })
      const { letters, runtime, deadLetters } = yield* startWithLetters(2, [a])
      a.answer(() => new Transient({ reason: "busy" }))
      const replay = yield* Effect.forkChild(deadLetters.replayAll({ network: "test" }, 10))
      yield* waitUntil("the first attempt failed", () => a.offered.length === 1)
      yield* deadLetters.endReplays
      assert.deepInclude(yield* Fiber.join(replay), { delivered: 0, failed: 0, skipped: 2 })
      assert.deepStrictEqual(yield* lettersOf(runtime), letters)
    }),
  )
})

describe("a filter of dead letters", () => {
  it.live("shows and discards by kind and by whether the match was taken back, and nothing else", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { feed, runtime, deadLetters } = yield* startWithLetters(4, [a])
      feed.fork(2, "x", [], [])
      // Two matches that were taken back, and their retractions.
      yield* waitForLetters(runtime, 6)
      const list = (filter: object, first = 10, after: string | null = null) =>
        deadLetters.list({ network: "test", ...filter, first, after })
      const pages: Array<ReadonlyArray<string>> = []
      for (let after: string | null = null, more = true; more;) {
        const page: Effect.Success<ReturnType<typeof list>> = yield* list({ ended: true }, 3, after)
        assert.strictEqual(page.totalCount, 4)
        pages.push(page.items.map(({ node }) => `${node.kind} ${node.whyNot}`))
        after = page.endCursor
        more = page.hasNextPage
      }
      assert.deepStrictEqual(pages, [
        ["match RETRACTED", "match RETRACTED", "retracted NO_REPLAY_RETRACTED"],
        ["retracted NO_REPLAY_RETRACTED"],
      ])
      assert.strictEqual((yield* list({ kind: "match", ended: false })).totalCount, 2)
      assert.strictEqual((yield* list({ kind: "retracted" })).totalCount, 2)
      assert.strictEqual((yield* list({ kind: "retracted", ended: false })).totalCount, 0)
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test", kind: "match", ended: true }), 2)
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test", kind: "retracted", sink: "a" }), 2)
      assert.deepStrictEqual((yield* lettersOf(runtime)).map(deathOf), ["1 permanent: no", "1 permanent: no"])
    }),
  )

  it.live("that names what does not exist is refused with what there is; what is gone but has letters is known", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime, deadLetters } = yield* startWithLetters(1, [a, b])
      const resources = resourcesOf(runtime)
      const refusals = Effect.fnUntraced(function* (filter: { network: string; sink?: string; monitor?: string }) {
        const errors = yield* Effect.forEach(
          [
            deadLetters.list({ ...filter, first: 1, after: null }),
            deadLetters.replayAll(filter, 1),
            deadLetters.discardAll(filter),
          ],
          (act) => Effect.flip(act as Effect.Effect<unknown, Error>),
        )
        assert.strictEqual(new Set(errors.map(({ message }) => message)).size, 1)
        return errors[0]!.message
      })
      assert.strictEqual(yield* refusals({ network: "nets" }), `network "nets" does not exist; there are "test"`)
      assert.strictEqual(yield* refusals({ network: "test", sink: "c" }), `sink "c" does not exist; there are "a", "b"`)
      assert.strictEqual(
        yield* refusals({ network: "test", monitor: "al" }),
        `monitor "al" of network "test" does not exist; there are "all"`,
      )
      yield* resources.putMonitor({ id: "other", network: "test", selector: { name: "None" }, sinks: ["b"] })
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test", monitor: "other" }), 0)
      // Its letters are known by their monitor as long as they are kept, whatever becomes of it.
      yield* resources.putMonitor({ id: "all", network: "test", selector: { name: "Transfer" }, sinks: ["b"] })
      yield* deadLetters.discardAll({ network: "test", sink: "b" })
      yield* resources.deleteMonitor("all", { discard: true })
      assert.match(yield* refusals({ network: "test", monitor: "all" }), /does not exist; there are "other"/)
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
    }),
  )
})
