import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { resourcesOf } from "../../../support/runtime.ts"
import { transfer } from "../faults/support.ts"
import { lettersOf, waitForEnd, waitForState, waitForWords } from "../taking-back/support.ts"
import { refuser, startWithLetters, waitForLetters } from "./support.ts"

/** Four matches that the sink was offered, of which it did not take two back. */
const withDeadRetractions = Effect.gen(function* () {
  const a = refuser("a")
  const started = yield* startWithLetters(4, [a])
  started.feed.fork(2, "x", [], [])
  yield* waitForLetters(started.runtime, 6)
  a.offered.length = 0
  return { a, ...started }
})

const kinds = (letters: ReadonlyArray<{ readonly kind: string }>) => letters.map(({ kind }) => kind).toSorted()

describe("retractions that died", () => {
  it.live("are sent again on request, in order, and are gone when the sink takes them", () =>
    Effect.gen(function* () {
      const { a, runtime, deadLetters } = yield* withDeadRetractions
      a.accept()
      assert.strictEqual(yield* deadLetters.offerRetractions("test", "a"), 2)
      yield* waitForWords(a, ["-3", "-4"])
      assert.isTrue(a.offered.every(({ id, nonce }) => id.endsWith("-r") && nonce === null))
      yield* waitForLetters(runtime, 4)
      assert.deepStrictEqual(kinds(yield* lettersOf(runtime)), Array(4).fill("match"))
      assert.strictEqual(yield* deadLetters.offerRetractions("test", "a"), 0)
    }),
  )

  it.live("of a match that stands again are left", () =>
    Effect.gen(function* () {
      const { a, feed, runtime, deadLetters } = yield* withDeadRetractions
      // The first branch wins back, as far as the third transfer.
      feed.fork(2, "", [transfer(3)], [], [])
      yield* waitForEnd(runtime, 5)
      yield* waitForLetters(runtime, 7)
      a.accept()
      assert.strictEqual(yield* deadLetters.offerRetractions("test", "a"), 1)
      yield* waitForWords(a, ["-4"])
    }),
  )

  it.live("of a paused network are sent when it goes on", () =>
    Effect.gen(function* () {
      const { a, runtime, deadLetters } = yield* withDeadRetractions
      a.accept()
      yield* resourcesOf(runtime).pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      assert.strictEqual(yield* deadLetters.offerRetractions("test", "a"), 2)
      assert.deepStrictEqual(a.words(), [])
      yield* resourcesOf(runtime).resumeNetwork("test")
      yield* waitForWords(a, ["-3", "-4"])
    }),
  )

  it.live("are not offered to a sink that is paused or missing, nor for a network that is not there", () =>
    Effect.gen(function* () {
      const { runtime, deadLetters } = yield* withDeadRetractions
      const refusal = (network: string, sink: string) =>
        Effect.map(
          Effect.flip(deadLetters.offerRetractions(network, sink)),
          ({ _tag, message }) => `${_tag}: ${message}`,
        )
      yield* resourcesOf(runtime).pauseSink("a")
      assert.match(yield* refusal("test", "a"), /^Conflict: sink "a" is paused/)
      assert.match(yield* refusal("test", "b"), /^Conflict: sink "b" does not exist; make it again/)
      assert.match(yield* refusal("none", "a"), /^NotFound: network "none" does not exist/)
      assert.deepStrictEqual(kinds(yield* lettersOf(runtime)).slice(-2), ["retracted", "retracted"])
    }),
  )
})

describe("a dead letter that is discarded", () => {
  it.live("is gone unsent, alone or with all that a filter shows", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime, letters, deadLetters } = yield* startWithLetters(3, [a, b])
      yield* deadLetters.discard(letters[0]!.id)
      assert.strictEqual((yield* Effect.flip(deadLetters.discard(letters[0]!.id)))._tag, "NotFound")
      assert.strictEqual((yield* Effect.flip(deadLetters.discard("x")))._tag, "NotFound")
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test", sink: "b", ended: true }), 0)
      const ofB = letters.slice(1).filter(({ sink }) => sink === "b").length
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test", sink: "b" }), ofB)
      assert.strictEqual(yield* deadLetters.discardAll({ network: "test" }), letters.length - 1 - ofB)
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
      assert.deepStrictEqual([a.offered, b.offered], [[], []])
    }),
  )

  it.live("is still taken back: the receiver may have heard of it", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { feed, letters, deadLetters } = yield* startWithLetters(2, [a])
      yield* deadLetters.discard(letters[1]!.id)
      a.accept()
      feed.fork(1, "x", [])
      yield* waitForWords(a, ["-2"])
    }),
  )
})
