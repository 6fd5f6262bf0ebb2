import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { resourcesOf } from "../../../support/runtime.ts"
import { lettersOf } from "../taking-back/support.ts"
import { held, refuser, startWithLetters } from "../replays/support.ts"

describe("dead letters that are replayed", () => {
  it.live("keep their place in the list when the replay fails", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(3, [a])
      yield* deadLetters.replay(letters[0]!.id)
      assert.deepStrictEqual(
        (yield* lettersOf(runtime)).map(({ id }) => id),
        letters.map(({ id }) => id),
      )
    }),
  )

  it.live("are kept as they were when the replay is given up", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const { runtime, letters, deadLetters } = yield* startWithLetters(3, [a])
      const attempt = held()
      a.answer(() => attempt.wait)
      const replay = yield* Effect.forkChild(Effect.exit(deadLetters.replay(letters[0]!.id)))
      yield* attempt.begun
      yield* resourcesOf(runtime).pauseSink("a")
      yield* Fiber.join(replay)
      assert.deepStrictEqual(yield* lettersOf(runtime), letters)
    }),
  )

  it.live("of a sink that can take them are not kept waiting by those of one that is paused", () =>
    Effect.gen(function* () {
      const a = refuser("a")
      const b = refuser("b")
      const { runtime, deadLetters } = yield* startWithLetters(3, [a, b])
      b.accept()
      yield* resourcesOf(runtime).pauseSink("a")
      // One call after another, as an operator who empties the queue by small steps.
      let delivered = 0
      for (let i = 0; i < 10; i++) delivered += (yield* deadLetters.replayAll({ network: "test" }, 1)).delivered
      assert.strictEqual(delivered, 3)
    }),
  )
})
