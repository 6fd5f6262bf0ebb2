import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Latch, Layer, Scope } from "effect"
import { Conflict, layerSqlite, Storage } from "../../../../core/index.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, endsInTime, Gate, sourceThatRuns, startOver, transfer } from "../faults/support.ts"
import { isRetraction, listener, runOver, waitForEnd, waitForState, waitForWords } from "./support.ts"

/** A network whose sink `a`, that no monitor names any more, holds its first retraction at a gate; `b` is at hand. */
const hanging = Effect.gen(function* () {
  const feed = new ScriptedFeed()
  feed.append([transfer(1)], [transfer(2)], [transfer(3)])
  const sending = new Gate("closed")
  const a = listener("a", { before: (event) => (isRetraction(event) ? sending.pass : Effect.void) })
  const b = listener("b")
  const runtime = yield* startRuntime({
    plugins: [scriptedSource(feed)],
    resources: definitions([a.sink, b.sink]),
    settings: { drainTimeoutMs: 500 },
  })
  yield* waitForEnd(runtime, 3)
  return { feed, sending, a, b, runtime, resources: resourcesOf(runtime) }
})

const names = (all: Effect.Effect<ReadonlyArray<{ readonly id: string }>, unknown>) =>
  Effect.orDie(Effect.map(all, (found) => found.map(({ id }) => id)))

describe("a network that is deleted", () => {
  it.live("while it takes something back tells that first, also sinks that no monitor names any more", () =>
    Effect.gen(function* () {
      const { feed, sending, a, runtime, resources } = yield* hanging
      yield* resources.deleteMonitor("all")
      feed.fork(1, "x", [transfer(20)], [])
      yield* sending.reached
      const owing = yield* Effect.flip(resources.deleteNetwork("test"))
      assert.instanceOf(owing, Conflict)
      assert.include(owing.message, "owes 2 deliveries")
      yield* waitForState(runtime, "INVALIDATING")
      const deleting = yield* Effect.forkChild(resources.deleteNetwork("test", { discard: true }))
      yield* waitUntil(
        "it is being deleted",
        Effect.map(Effect.exit(resources.rewindNetwork("test", endOf(1))), ({ _tag }) => _tag === "Failure"),
      )
      assert.deepStrictEqual(yield* names(resources.networks), ["test"])
      yield* sending.open
      yield* Fiber.join(deleting)
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3", "-2", "-3"])
      assert.deepStrictEqual(yield* names(resources.networks), [])
    }),
  )

  it.live("whose source found a fork when it was told to end tells that first", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const a = listener("a")
      const looking = Latch.makeUnsafe(false)
      const found = Latch.makeUnsafe(false)
      const plugin = sourceThatRuns(feed, (script, given) =>
        Effect.raceFirst(script(given), looking.await).pipe(
          Effect.andThen(found.await),
          Effect.as({ _tag: "Invalidated", from: endOf(1), cause: "a fork" } as const),
        ),
      )
      let deleting = false
      const { runtime } = yield* startOver(
        ({ debts }) => ({
          // The last look before the network is told to end: the source's end comes right behind that.
          debts: (by) =>
            Effect.tap(debts(by), () =>
              Effect.sync(() => {
                if (deleting) found.openUnsafe()
              }),
            ),
        }),
        { plugins: [plugin], resources: definitions([a.sink]) },
      )
      const resources = resourcesOf(runtime)
      yield* waitForEnd(runtime, 2)
      yield* resources.deleteMonitor("all")
      looking.openUnsafe()
      deleting = true
      yield* resources.deleteNetwork("test")
      assert.deepStrictEqual(a.words(), ["+1", "+2", "-2"])
      assert.deepStrictEqual(yield* names(resources.networks), [])
    }),
  )
})

describe("a program that stops while a network is deleted", () => {
  it.live("keeps the network with the retractions that are not sent yet, and says so", () =>
    Effect.gen(function* () {
      const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      let attempts = 0
      const a = listener("a", {
        buffer: "DURABLE",
        before: (event) =>
          isRetraction(event)
            ? Effect.andThen(
                Effect.sync(() => attempts++),
                Effect.never,
              )
            : Effect.void,
      })
      const program = yield* Scope.make()
      const options = {
        plugins: [scriptedSource(feed)],
        resources: definitions([a.sink]),
        settings: { drainTimeoutMs: 50 },
      }
      const runtime = yield* Scope.provide(runOver(storage, options), program)
      const resources = resourcesOf(runtime)
      yield* waitForEnd(runtime, 3)
      yield* waitForWords(a, ["+1", "+2", "+3"])
      yield* resources.pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      yield* resources.rewindNetwork("test", endOf(1))
      yield* waitUntil("a retraction is tried", () => attempts === 1)
      yield* resources.deleteMonitor("all", { discard: true })
      const before = attempts
      const deleting = yield* Effect.forkChild(Effect.flip(resources.deleteNetwork("test", { discard: true })))
      yield* waitUntil("the deletion tries it again", () => attempts > before)
      yield* Scope.close(program, Exit.void)
      const refused = yield* Fiber.join(deleting)
      assert.instanceOf(refused, Conflict)
      assert.include(refused.message, "not all that it takes back is told yet")
      assert.strictEqual((yield* storage.resources).networks.length, 1)
      const owed = yield* storage.owed("test", "a", { kind: "retracted", afterSeq: 0, limit: 9 })
      assert.strictEqual(owed.length, 2)
    }),
  )
})

describe("what is deleted with discard while a sink does not take its retractions", () => {
  it.live("is a monitor: at once, and its retractions are sent all the same", () =>
    Effect.gen(function* () {
      const { feed, sending, a, runtime, resources } = yield* hanging
      feed.fork(1, "x", [transfer(20)], [])
      yield* sending.reached
      const refused = yield* Effect.flip(resources.deleteMonitor("all"))
      assert.instanceOf(refused, Conflict)
      assert.match(refused.message, /give them up \(retractions that it owes are sent all the same\)$/)
      const deleting = yield* Effect.forkChild(resources.deleteMonitor("all", { discard: true }))
      assert.isTrue(yield* endsInTime(deleting))
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3"])
      yield* sending.open
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3"])
      yield* waitForEnd(runtime, 3)
    }),
  )

  it.live("is that sink: at once, and the others are told all", () =>
    Effect.gen(function* () {
      const { feed, sending, a, b, runtime, resources } = yield* hanging
      yield* resources.putMonitor(allTransfers(["b"]))
      feed.append([transfer(4)])
      yield* waitForWords(b, ["+4"])
      feed.fork(1, "x", [transfer(20)], [], [])
      yield* sending.reached
      yield* waitForWords(b, ["+4", "-4"])
      const refused = yield* Effect.flip(resources.deleteSink("a"))
      assert.instanceOf(refused, Conflict)
      const deleting = yield* Effect.forkChild(resources.deleteSink("a", { discard: true }))
      assert.isTrue(yield* endsInTime(deleting))
      yield* waitForWords(b, ["+4", "-4", "+20"])
      yield* waitForEnd(runtime, 4)
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3"])
      assert.deepStrictEqual(yield* names(resources.sinks), ["b"])
    }),
  )
})
