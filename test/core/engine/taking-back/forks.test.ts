import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { Transient } from "../../../../core/index.ts"
import { networkNow, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, databaseFile, definitions, transfer } from "../faults/support.ts"
import { lettersOf, listener } from "./support.ts"

describe("a fork that cuts into what was delivered", () => {
  it.live("is told to each sink: all retractions, then all replacements; what lies before it stays", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      const a = listener("a")
      const b = listener("b")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        resources: { ...definitions([a.sink, b.sink]), monitors: [allTransfers(["a", "b"])] },
      })
      yield* waitForCheckpoint(runtime, "test", 3)
      feed.fork(1, "x", [transfer(20)], [transfer(30)], [transfer(40)])
      yield* waitForCheckpoint(runtime, "test", 4)
      for (const { words } of [a, b]) {
        assert.deepStrictEqual(words(), ["+1", "+2", "+3", "-2", "-3", "+20", "+30", "+40"])
      }
      assert.deepInclude(yield* networkNow(runtime, "test"), { state: "RUNNING", error: null })
    }),
  )

  it.live("that flips back gives the same ids in their next life, and other ids of the deliveries", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const { told, words, standing, sink } = listener("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink]) })
      yield* waitForCheckpoint(runtime, "test", 2)
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForCheckpoint(runtime, "test", 3)
      feed.fork(1, "", [transfer(2)], [], [])
      yield* waitForCheckpoint(runtime, "test", 4)
      yield* waitUntil("the flip back is told", () => words().length === 6)
      assert.deepStrictEqual(words(), ["+1", "+2", "-2", "+20", "-20", "+2"])
      const id = told[1]!.id
      assert.deepStrictEqual([told[2]!.id, told[5]!.id], [`${id}-r`, `${id}-2`])
      assert.deepStrictEqual(standing(), ["1", "2"])
    }),
  )
})

describe("a sink that is down", () => {
  it.live("gets no more attempts than it is allowed, however often a fork or a stop interrupts them", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [])
      const numbers: Array<number> = []
      const down = {
        ...listener("a").sink,
        // No back-off ends by itself.
        retry: { maxAttempts: 4, initialBackoffMs: 3_600_000, maxBackoffMs: 3_600_000 },
        deliver: (_: unknown, { attempt }: { readonly attempt: number }) =>
          Effect.suspend(() => {
            numbers.push(attempt)
            return Effect.fail(new Transient({ reason: "down" }))
          }),
      }
      const options = { path, plugins: [scriptedSource(feed)], resources: definitions([down]) }
      const tried = (count: number) => waitUntil(`${count} attempts`, () => numbers.length === count)
      const scope = yield* Scope.make()
      yield* startRuntime(options).pipe(Scope.provide(scope))
      yield* tried(1)
      feed.fork(1, "x", [], [])
      yield* tried(2)
      yield* Scope.close(scope, Exit.void)
      const runtime = yield* startRuntime(options)
      yield* tried(3)
      feed.fork(1, "y", [], [], [])
      yield* waitForCheckpoint(runtime, "test", 4)
      assert.deepStrictEqual(numbers, [1, 2, 3, 4])
      const [letter, ...others] = yield* lettersOf(runtime)
      assert.deepStrictEqual([letter?.attempts, letter?.reason, others], [4, "transient: down", []])
    }),
  )
})
