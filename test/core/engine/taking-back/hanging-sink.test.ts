import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Permanent, Transient } from "../../../../core/index.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { networkNow, resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, startOver, transfer, waitForNetwork } from "../faults/support.ts"
import { isRetraction, lettersOf, listener, waitForEnd } from "./support.ts"

const hour = 3_600_000
const total = 1_000

/** One transfer in the first block, a thousand in the second. */
const longFeed = () => {
  const feed = new ScriptedFeed()
  feed.append(
    [transfer(0)],
    Array.from({ length: total }, (_, i) => transfer(i + 1)),
  )
  return feed
}

const retractions = ({ words }: { readonly words: () => ReadonlyArray<string> }) =>
  words().filter((word) => word.startsWith("-")).length

describe("a sink that does not take its retractions", () => {
  for (const [how, fails, patience] of [
    ["in a back-off", Effect.fail(new Transient({ reason: "down" })), 30_000],
    ["in an attempt", Effect.never, hour],
  ] as const) {
    it.live(`keeps no other sink waiting, and goes on at once when it is put anew ${how}`, () =>
      Effect.gen(function* () {
        const feed = longFeed()
        let broken = true
        const a = listener("a")
        const b = listener("b", {
          timeoutMs: patience,
          retry: { maxAttempts: 8, initialBackoffMs: 24 * hour, maxBackoffMs: 24 * hour },
          before: (event) => (broken && isRetraction(event) ? fails : Effect.void),
        })
        const c = listener("c")
        const { runtime, storage } = yield* startOver(() => ({}), {
          plugins: [scriptedSource(feed)],
          resources: { ...definitions([a.sink, b.sink, c.sink]), monitors: [allTransfers(["a", "b", "c"])] },
        })
        yield* waitForEnd(runtime, 2)
        feed.fork(1, "x", [transfer(2_000)], [])
        yield* waitUntil("the others have all retractions", () => retractions(a) + retractions(c) === 2 * total)
        if (fails !== Effect.never) {
          yield* waitForNetwork(
            runtime,
            "the network tells what it waits for",
            ({ error, state }) =>
              state === "INVALIDATING" && error === "takes back everything behind 1: waits for sink b: transient: down",
          )
        }
        assert.deepInclude(yield* networkNow(runtime, "test"), { state: "INVALIDATING" })
        assert.strictEqual(retractions(b), 0)
        // Nothing goes back, and nobody hears of a replacement, before the last retraction is over.
        assert.deepInclude(yield* storage.pipeline("test"), { minted: endOf(2), checkpoint: endOf(2) })
        for (const { words } of [a, b, c]) assert.notInclude(words(), "+2000")
        broken = false
        yield* resourcesOf(runtime).putSink({ id: "b", module: "host:b", config: {} })
        yield* waitForEnd(runtime, 3)
        for (const sink of [a, b, c]) {
          assert.strictEqual(retractions(sink), total)
          assert.deepStrictEqual(sink.standing(), ["0", "2000"])
        }
        assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null, deadLetterCount: 0 })
      }),
    )
  }

  it.live("is given up after one delivery's retries and three more attempts, and the network goes on", () =>
    Effect.gen(function* () {
      const feed = longFeed()
      let attempts = 0
      const a = listener("a", {
        timeoutMs: 30,
        retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1 },
        before: (event) => {
          if (!isRetraction(event)) return Effect.void
          attempts++
          return Effect.never
        },
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 2)
      feed.fork(1, "x", [transfer(2_000)], [])
      yield* waitForEnd(runtime, 3)
      assert.strictEqual(attempts, 5)
      const letters = yield* lettersOf(runtime)
      const late = "transient: no outcome within 30 ms"
      assert.deepStrictEqual(
        letters.map(({ attempts, reason }) => `${attempts} ${reason}`),
        [`2 ${late}`, ...Array(3).fill(`1 ${late}`), ...Array(total - 4).fill("0 transient: sink down")],
      )
      assert.isTrue(letters.every(({ whyNot }) => whyNot === "NO_REPLAY_RETRACTED"))
      assert.strictEqual(a.words().at(-1), "+2000")
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null, deadLetterCount: total })
    }),
  )

  it.live("is named as what the network waits for while it gets its last attempts", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 6 }, (_, i) => [transfer(i)]))
      let attempts = 0
      const a = listener("a", {
        timeoutMs: hour,
        retry: { maxAttempts: 1, initialBackoffMs: 1, maxBackoffMs: 1 },
        before: (event) => {
          if (!isRetraction(event)) return Effect.void
          return ++attempts < 3 ? Effect.fail(new Transient({ reason: "down" })) : Effect.never
        },
      })
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: definitions([a.sink]),
        settings: { drainTimeoutMs: 100 },
      })
      yield* waitForEnd(runtime, 6)
      feed.fork(1, "x", ...Array.from({ length: 5 }, () => []))
      yield* waitUntil("the third attempt hangs", () => attempts === 3)
      assert.deepInclude(yield* networkNow(runtime, "test"), {
        state: "INVALIDATING",
        error: "takes back everything behind 1: waits for sink a: transient: down",
      })
    }),
  )

  it.live("is trusted again after it answered, be it with a refusal", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(...Array.from({ length: 9 }, (_, i) => [transfer(i)]))
      const down = new Transient({ reason: "down" })
      const answers: Record<string, ReadonlyArray<Transient | Permanent | null>> = {
        "1": [down, down],
        "2": [down],
        "3": [null],
        "4": [down, null],
        "5": [down, down],
        "6": [new Permanent({ reason: "no" })],
        "7": [down, null],
        "8": [null],
      }
      const taken = new Map<string, number>()
      const a = listener("a", {
        retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1 },
        before: (event) => {
          if (event.type !== "retracted") return Effect.void
          const value = a.valueOf(event.match_id)!
          const attempt = taken.get(value) ?? 0
          taken.set(value, attempt + 1)
          const answer = answers[value]![attempt]!
          return answer === null ? Effect.void : Effect.fail(answer)
        },
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 9)
      feed.fork(1, "x", ...Array.from({ length: 9 }, () => []))
      yield* waitForEnd(runtime, 10)
      assert.deepStrictEqual(
        [...taken].map(([value, attempts]) => [value, attempts]),
        Object.entries(answers).map(([value, { length }]) => [value, length]),
      )
    }),
  )
})
