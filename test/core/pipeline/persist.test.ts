import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { untilStored } from "../../../core/pipeline/persist.ts"
import { PipelineStatus } from "../../../core/pipeline/status.ts"
import { StorageError } from "../../../core/storage/error.ts"

const away = (retryable: boolean) => new StorageError({ operation: "settle", reason: "away", retryable })

describe("a write that the database does not take", () => {
  it.effect("is tried again without end, at most about a second apart, and told once", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function* () {
      const status = new PipelineStatus()
      let tries = 0
      let isAway = true
      const write = Effect.suspend(() => {
        tries++
        return isAway ? Effect.fail(away(true)) : Effect.succeed("written")
      })
      const fiber = yield* Effect.forkChild(untilStored(status)(write), { startImmediately: true })
      assert.strictEqual(tries, 1)
      yield* TestClock.adjust(24)
      assert.isAtLeast(tries, 2)
      yield* TestClock.adjust("1 minute")
      assert.isAbove(tries, 50)
      assert.strictEqual(status.trouble(0), "storage: settle: away")
      isAway = false
      yield* TestClock.adjust("1200 millis")
      assert.strictEqual(yield* Fiber.join(fiber), "written")
      assert.isNull(status.trouble(0))
      assert.deepStrictEqual(lines, [
        "storage: settle: away; the pipeline waits and tries again",
        "the database takes writes again",
      ])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("fails at once where no repetition can mend it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(untilStored(new PipelineStatus())(Effect.fail(away(false))))
      assert.strictEqual(error.message, "storage: settle: away")
    }),
  )
})
