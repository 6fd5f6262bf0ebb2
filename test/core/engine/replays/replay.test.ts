import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { Permanent, PluginRefused, SinkPlugin, Transient } from "../../../../core/index.ts"
import { networkNow, resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, fast, transfer, waitForNetwork } from "../faults/support.ts"
import { lettersOf, waitForEnd, waitForState } from "../taking-back/support.ts"
import { deathOf, held, lettersIn, NO, refuser, startWithLetters, waitForLetters } from "./support.ts"

const hour = 3_600_000

describe("the replay of a dead letter", () => {
  it.live("delivers the same bytes under the same id, with a nonce of its own, and the letter is gone", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const first: Array<string> = []
      a.answer((delivery) => {
        first.push(`${delivery.id} ${delivery.body} ${delivery.nonce}`)
        return new Permanent({ reason: "no" })
      })
      const { runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      a.accept()
      assert.deepStrictEqual(yield* deadLetters.replay(letters[0]!.id), { delivered: true, deadLetter: null })
      const [{ id, body, nonce, attempt }] = a.offered as [(typeof a.offered)[0]]
      assert.strictEqual(first[0], `${id} ${body} null`)
      assert.match(nonce!, /^[0-9a-f-]{36}$/)
      assert.strictEqual(attempt, 1)
      assert.deepStrictEqual(a.words(), ["+1"])
      assert.deepStrictEqual(
        (yield* lettersOf(runtime)).map(({ seq }) => seq),
        [letters[1]!.seq],
      )
      assert.strictEqual((yield* networkNow(runtime, "test")).deadLetterCount, 1)
      assert.strictEqual((yield* Effect.flip(deadLetters.replay(letters[0]!.id)))._tag, "NotFound")
    }),
  )

  it.live(
    "has all retries of its sink with one nonce, and when it fails keeps the letter with the new reason and all attempts",
    () =>
      Effect.gen(function* () {
        const a = refuser("a", { retry: fast })
        const { runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
        a.answer(() => new Transient({ reason: "busy" }))
        const { delivered, deadLetter } = yield* deadLetters.replay(letters[0]!.id)
        assert.isFalse(delivered)
        assert.deepInclude(deadLetter, { id: letters[0]!.id, attempts: 4, reason: "transient: busy" })
        assert.deepStrictEqual(
          a.offered.map(({ attempt }) => attempt),
          [1, 2, 3],
        )
        assert.strictEqual(new Set(a.offered.map(({ nonce }) => nonce)).size, 1)
        const kept = yield* lettersOf(runtime)
        assert.deepStrictEqual(kept.map(deathOf), ["4 transient: busy", `1 ${NO}`])
        assert.deepStrictEqual(
          kept.map(({ id, createdAt }) => [id, createdAt]),
          letters.map(({ id, createdAt }) => [id, createdAt]),
        )
        yield* deadLetters.replay(letters[0]!.id)
        assert.strictEqual(new Set(a.offered.map(({ nonce }) => nonce)).size, 2)
        assert.strictEqual(new Set(a.offered.map(({ id }) => id)).size, 1)
      }),
  )

  it.live("takes its sink as it is configured by then, also in the middle of a back-off", () =>
    Effect.gen(function* () {
      const a = refuser("a", { retry: fast })
      const { runtime, letters, deadLetters } = yield* startWithLetters(1, [a])
      const put = (retry: object) => resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, retry })
      yield* put({ maxAttempts: 2, initialBackoffMs: 24 * hour, maxBackoffMs: 24 * hour })
      a.answer(() => new Transient({ reason: "busy" }))
      const replay = yield* Effect.forkChild(deadLetters.replay(letters[0]!.id))
      yield* waitUntil("the first attempt failed", () => a.offered.length === 1)
      yield* put({ maxAttempts: 1 })
      assert.isFalse((yield* Fiber.join(replay)).delivered)
      assert.strictEqual(a.offered.length, 2)
    }),
  )

  it.live("goes on to its end when nobody waits for it any more", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      const { wait, begun, letGo } = held()
      a.answer(() => wait)
      const one = yield* Effect.forkChild(deadLetters.replay(letters[0]!.id))
      const all = yield* Effect.forkChild(deadLetters.replayAll({ network: "test" }, 10))
      yield* begun
      yield* Fiber.interrupt(one)
      yield* Fiber.interrupt(all)
      assert.strictEqual(a.offered.length, 1)
      yield* letGo
      yield* waitUntil(
        "all letters are gone",
        Effect.map(lettersOf(runtime), ({ length }) => length === 0),
      )
      assert.deepStrictEqual(a.words(), ["+1", "+2"])
    }),
  )

  it.live("waits for others at its sink, and neither for those at other sinks nor for its deliveries", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a, b])
      const ofA = letters.filter(({ sink }) => sink === "a")
      const ofB = letters.find(({ sink }) => sink === "b")!
      const { wait, begun, letGo } = held()
      const heldId = ofA[0]!.matchId
      a.answer(({ id }) => (id === heldId ? wait : Effect.void))
      b.accept()
      const first = yield* Effect.forkChild(deadLetters.replay(ofA[0]!.id))
      yield* begun
      const second = yield* Effect.forkChild(deadLetters.replay(ofA[1]!.id))
      assert.isTrue((yield* deadLetters.replay(ofB.id)).delivered)
      feed.append([transfer(3)])
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(a.words(), ["+3"])
      yield* letGo
      assert.isTrue((yield* Fiber.join(first)).delivered && (yield* Fiber.join(second)).delivered)
      assert.deepStrictEqual(a.words(), ["+3", "+1", "+2"])
    }),
  )

  it.live("is made while its network is paused, and is not repeated by the pipeline that opens meanwhile", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      const { wait, begun, letGo } = held()
      const heldId = letters[1]!.matchId
      a.answer(({ id }) => (id === heldId ? wait : Effect.void))
      assert.isTrue((yield* deadLetters.replay(letters[0]!.id)).delivered)
      const second = yield* Effect.forkChild(deadLetters.replay(letters[1]!.id))
      yield* begun
      feed.append([transfer(3)])
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(a.words(), ["+1", "+3"])
      yield* letGo
      assert.isTrue((yield* Fiber.join(second)).delivered)
      assert.deepStrictEqual(a.words(), ["+1", "+3", "+2"])
      assert.strictEqual(a.offered.length, 3)
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", deadLetterCount: 0 })
    }),
  )

  it.live("is refused while its sink is paused, with what to do, and the letter is kept", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(1, [a])
      const resources = resourcesOf(runtime)
      const { id } = letters[0]!
      const refusals = Effect.gen(function* () {
        const [one, all] = [deadLetters.replay(id), deadLetters.replayAll({ network: "test", sink: "a" }, 5)]
        const errors = [yield* Effect.flip(one), yield* Effect.flip(all)]
        assert.deepStrictEqual(
          errors.map(({ _tag }) => _tag),
          ["Conflict", "Conflict"],
        )
        assert.strictEqual(errors[0]!.message, errors[1]!.message)
        assert.deepStrictEqual(yield* deadLetters.replayAll({ network: "test" }, 5), {
          delivered: 0,
          failed: 0,
          skipped: 1,
          whySkipped: [errors[0]!.message],
          endCursor: null,
        })
        return errors[0]!.message
      })
      yield* resources.pauseSink("a")
      assert.match(yield* refusals, /^sink "a" is paused \(.*\); let it go on with resumeSink/)
      yield* resources.resumeSink("a")
      assert.deepStrictEqual((yield* lettersOf(runtime)).map(deathOf), [`1 ${NO}`])
      assert.strictEqual(a.offered.length, 0)
    }),
  )

  it.live("is refused while its sink is FAILED, and made once it is put right", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      let broken = false
      let takes = false
      const plugin = SinkPlugin.make({
        name: "flaky",
        config: Schema.Struct({}),
        make: () =>
          broken
            ? new PluginRefused({ reason: "its secret is not set" })
            : Effect.succeed({
                timeoutMs: 1_000,
                deliver: () => (takes ? Effect.void : Effect.fail(new Permanent({ reason: "no" }))),
              }),
      })
      const feed = new ScriptedFeed()
      feed.append([transfer(1)])
      const start = startRuntime({
        path,
        plugins: [scriptedSource(feed), plugin],
        resources: {
          networks: [{ id: "test", module: "scripted", config: {} }],
          monitors: [allTransfers(["f"])],
          sinks: [{ id: "f", module: "flaky", config: {} }],
        },
      })
      yield* Effect.scoped(Effect.andThen(start, (first) => waitForEnd(first, 1)))
      broken = true
      const runtime = yield* startRuntime({ path, plugins: [scriptedSource(feed), plugin] })
      yield* waitForNetwork(runtime, "it runs here", ({ checkpoint }) => checkpoint !== null)
      const [letter] = yield* lettersOf(runtime)
      const replay = lettersIn(runtime).replay(letter!.id)
      assert.strictEqual(
        (yield* Effect.flip(replay)).message,
        `sink "f" is FAILED (its secret is not set); put it right with putSink, then repeat this`,
      )
      broken = false
      takes = true
      yield* resourcesOf(runtime).putSink({ id: "f", module: "flaky", config: {} })
      assert.isTrue((yield* replay).delivered)
    }),
  )

  it.live("skips the throttle and joins no digest", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, feed, deadLetters } = yield* startWithLetters(0, [a])
      a.accept()
      yield* resourcesOf(runtime).putSink({
        id: "a",
        module: "host:a",
        config: {},
        throttle: { maxDeliveries: 1, windowMs: hour },
      })
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      yield* waitForLetters(runtime, 2)
      yield* resourcesOf(runtime).putSink({
        id: "a",
        module: "host:a",
        config: {},
        throttle: { maxDeliveries: 1, windowMs: hour },
        aggregate: { maxBatch: 100, windowMs: hour },
      })
      assert.deepStrictEqual(yield* deadLetters.replayAll({ network: "test" }, 10), {
        delivered: 2,
        failed: 0,
        skipped: 0,
        whySkipped: [],
        endCursor: null,
      })
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3"])
    }),
  )

  it.live("that hears of a receiver that is gone pauses the sink", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, deadLetters } = yield* startWithLetters(3, [a])
      a.answer(() => new Permanent({ reason: "HTTP 410", gone: true }))
      const { endCursor, ...counts } = yield* deadLetters.replayAll({ network: "test" }, 10)
      assert.deepStrictEqual(counts, {
        delivered: 0,
        failed: 1,
        skipped: 2,
        whySkipped: [`sink "a" is paused (HTTP 410); let it go on with resumeSink, then repeat this`],
      })
      assert.isNotNull(endCursor)
      const [sink] = yield* resourcesOf(runtime).sinks
      assert.strictEqual(sink!.state, "PAUSED")
      assert.strictEqual(a.offered.length, 1)
    }),
  )

  it.live("is refused for what is no letter, or was taken back, or is a retraction", () =>
    Effect.gen(function* () {
      const a = refuser("a", { retry: fast })
      const { feed, runtime, letters, deadLetters } = yield* startWithLetters(2, [a])
      for (const id of ["", "x", `${letters[0]!.id}=`, btoa("letter:test:999999").replaceAll("=", "")]) {
        assert.strictEqual((yield* Effect.flip(deadLetters.replay(id)))._tag, "NotFound", id)
      }
      const elsewhere = btoa(`letter:other:${letters[0]!.seq}`).replaceAll("=", "")
      assert.match((yield* Effect.flip(deadLetters.replay(elsewhere))).message, /network "other" does not exist/)
      feed.fork(1, "x", [])
      yield* waitForNetwork(runtime, "the retraction died", ({ deadLetterCount }) => deadLetterCount === 3)
      const codes = new Map<string, string>()
      for (const { id, kind, whyNot } of yield* lettersOf(runtime)) {
        if (whyNot === null) continue
        const error = yield* Effect.flip(deadLetters.replay(id))
        assert.strictEqual(error._tag === "NotReplayable" ? error.code : error._tag, whyNot)
        codes.set(kind, error.message)
      }
      assert.match(codes.get("match")!, /its match was taken back since.*; discard the letter/)
      assert.match(codes.get("retracted")!, /it is a retraction, which offerRetractions sends again/)
    }),
  )
})
