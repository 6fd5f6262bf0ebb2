import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber } from "effect"
import { DeadLetters, Permanent, Transient } from "../../../../core/index.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { networkNow, resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, endsInTime, Gate, transfer, waitForNetwork } from "../faults/support.ts"
import { isRetraction, listener, waitForEnd, waitForState, waitForWords } from "./support.ts"

/** A network whose sink has a durable buffer, was told of three transfers, and takes something only while `health.up`. */
const told = Effect.gen(function* () {
  const feed = new ScriptedFeed()
  feed.append([transfer(1)], [transfer(2)], [transfer(3)])
  const health = { up: true, attempts: 0 }
  const a = listener("a", {
    buffer: "DURABLE",
    retry: { maxAttempts: 5, initialBackoffMs: 20, maxBackoffMs: 40 },
    before: () =>
      Effect.suspend(() => {
        health.attempts++
        return health.up ? Effect.void : Effect.fail(new Transient({ reason: "down" }))
      }),
  })
  const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
  yield* waitForWords(a, ["+1", "+2", "+3"])
  yield* waitForEnd(runtime, 3)
  return { feed, health, a, runtime, resources: resourcesOf(runtime) }
})

describe("a sink with a durable buffer", () => {
  it.live("is told of a rewind while its network is paused, as soon as it answers, and of nothing else", () =>
    Effect.gen(function* () {
      const { feed, health, a, runtime, resources } = yield* told
      health.up = false
      feed.append([transfer(4)])
      const { attempts } = health
      yield* waitUntil("4 is tried", () => health.attempts > attempts)
      yield* resources.pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      yield* resources.rewindNetwork("test", endOf(2))
      yield* waitForNetwork(
        runtime,
        "it is rewound, and rests",
        ({ state, checkpoint }) => state === "PAUSED" && checkpoint?.cursor.primary === 2,
      )
      assert.isNull((yield* networkNow(runtime, "test")).error)
      health.up = true
      // Nobody knows whether 4 was heard of.
      yield* waitForWords(a, ["+1", "+2", "+3", "-3", "-4"])
      yield* resources.rewindNetwork("test", endOf(1))
      yield* waitForWords(a, ["+1", "+2", "+3", "-3", "-4", "-2"])
      yield* waitForState(runtime, "PAUSED")
      yield* resources.resumeNetwork("test")
      yield* waitForEnd(runtime, 4)
      yield* waitForWords(a, ["+1", "+2", "+3", "-3", "-4", "-2", "+2", "+3", "+4"])
    }),
  )

  /** Deletes the monitor once nothing is owed. */
  const deleteMonitor = ({ resources }: Effect.Success<typeof told>) =>
    waitUntil(
      "the monitor is deleted",
      Effect.map(Effect.exit(resources.deleteMonitor("all")), ({ _tag }) => _tag === "Success"),
    )

  /** Lets the network, whose sink is down, rewind, and deletes it before it could tell the sink. */
  const deleteInRewind = Effect.fnUntraced(function* (state: "RUNNING" | "PAUSED") {
    const all = yield* told
    const { health, runtime, resources } = all
    yield* deleteMonitor(all)
    health.up = false
    if (state === "PAUSED") {
      yield* resources.pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
    }
    yield* resources.rewindNetwork("test", endOf(1))
    const { attempts } = health
    yield* waitUntil("a retraction is tried", () => health.attempts > attempts)
    return { ...all, deleting: yield* Effect.forkChild(resources.deleteNetwork("test", { discard: true })) }
  })

  for (const state of ["RUNNING", "PAUSED"] as const) {
    it.live(`is told what its network took back before that is deleted (${state})`, () =>
      Effect.gen(function* () {
        const { health, a, deleting } = yield* deleteInRewind(state)
        health.up = true
        yield* Fiber.join(deleting)
        assert.deepStrictEqual(a.words(), ["+1", "+2", "+3", "-2", "-3"])
      }),
    )
  }

  it.live("that is down, or paused, does not hold up the deletion of its network", () =>
    Effect.gen(function* () {
      const down = yield* deleteInRewind("RUNNING")
      assert.isTrue(yield* endsInTime(down.deleting))
      assert.deepStrictEqual(down.a.words(), ["+1", "+2", "+3"])
      const paused = yield* told
      yield* deleteMonitor(paused)
      yield* paused.resources.pauseSink("a")
      yield* paused.resources.rewindNetwork("test", endOf(1))
      yield* waitForEnd(paused.runtime, 3)
      const deleting = yield* Effect.forkChild(paused.resources.deleteNetwork("test", { discard: true }))
      assert.isTrue(yield* endsInTime(deleting))
      assert.deepStrictEqual(paused.a.words(), ["+1", "+2", "+3"])
    }),
  )
})

describe("retractions that are offered again while their network is paused", () => {
  for (const buffer of ["DURABLE", "MEMORY"] as const) {
    it.live(`are sent at once, whatever is changed beside them (${buffer})`, () =>
      Effect.gen(function* () {
        const feed = new ScriptedFeed()
        feed.append([transfer(1)], [transfer(2)])
        const sending = new Gate("closed")
        let refuses = true
        let attempts = 0
        const a = listener("a", {
          buffer,
          before: (event) =>
            Effect.suspend(() => {
              if (!isRetraction(event)) return Effect.void
              attempts++
              return refuses ? Effect.fail(new Permanent({ reason: "no" })) : sending.pass
            }),
        })
        const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
        const resources = resourcesOf(runtime)
        yield* waitForWords(a, ["+1", "+2"])
        yield* waitForEnd(runtime, 2)
        yield* resources.pauseNetwork("test")
        yield* waitForState(runtime, "PAUSED")
        yield* resources.rewindNetwork("test", endOf(1))
        yield* waitForNetwork(runtime, "one is dead", ({ deadLetterCount }) => deadLetterCount === 1)
        yield* waitForState(runtime, "PAUSED")
        refuses = false
        assert.strictEqual(yield* Context.get(runtime, DeadLetters).offerRetractions("test", "a"), 1)
        yield* sending.reached
        yield* resources.putMonitor({ ...allTransfers(["a"]), id: "more" })
        yield* resources.deleteMonitor("more")
        yield* sending.open
        yield* waitForWords(a, ["+1", "+2", "-2"])
        assert.strictEqual(attempts, 2)
      }),
    )
  }
})
