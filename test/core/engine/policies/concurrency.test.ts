import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Transient } from "../../../../core/index.ts"
import { resourcesOf, startRuntime, waitForCheckpoint } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, Gate, transfer } from "../faults/support.ts"
import { receiver, waitFor, waitForInFlight, waitForLetters } from "./support.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Follows what is under way at a sink at once. */
class UnderWay {
  readonly now = new Set<string>()
  most = 0
  /** Retractions that were under way beside a match, which must not be. */
  readonly mixed: Array<string> = []

  readonly through = (what: string, delivering: Effect.Effect<void>) =>
    Effect.suspend(() => {
      this.now.add(what)
      this.most = Math.max(this.most, this.now.size)
      const kinds = new Set([...this.now].map((each) => each[0]))
      if (kinds.size > 1) this.mixed.push([...this.now].join(" "))
      return Effect.ensuring(
        delivering,
        Effect.sync(() => this.now.delete(what)),
      )
    })
}

describe("a sink that takes several deliveries at once", () => {
  it.live("has so many under way, and no more", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 10).map(transfer), range(11, 20).map(transfer))
      const delivering = new Gate("closed")
      const under = new UnderWay()
      const a = receiver("a", { concurrency: 3, before: (what) => under.through(what, delivering.pass) })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("three are under way", () => under.now.size === 3)
      yield* waitForInFlight(runtime, 20)
      assert.deepStrictEqual([...under.now], ["+1", "+2", "+3"])
      yield* delivering.open
      yield* waitForCheckpoint(runtime, "test", 2)
      assert.strictEqual(under.most, 3)
      assert.deepStrictEqual(
        a.words().toSorted(),
        range(1, 20)
          .map((value) => `+${value}`)
          .toSorted(),
      )
    }),
  )

  it.live("has retractions of different matches under way together", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 4).map(transfer))
      const retracting = new Gate("closed")
      const under = new UnderWay()
      const a = receiver("a", {
        concurrency: 3,
        before: (what) => under.through(what, what.startsWith("-") ? retracting.pass : Effect.void),
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForCheckpoint(runtime, "test", 1)
      feed.fork(0, "b", range(5, 6).map(transfer))
      yield* waitFor("three are under way", () => under.now.size === 3)
      yield* retracting.open
      yield* waitFor("all is told", () => a.told.length === 10)
      assert.deepStrictEqual(
        a.words().slice(4, 8).toSorted(),
        range(1, 4).map((value) => `-${value}`),
      )
      assert.deepStrictEqual(under.mixed, [])
    }),
  )

  it.live("has no retraction under way beside a match: each waits for those before it, and holds those behind it", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 5).map(transfer), range(6, 9).map(transfer))
      // A durable buffer has matches before and behind its retractions.
      const under = new UnderWay()
      let accepts = 9
      const a = receiver("a", {
        buffer: "DURABLE",
        concurrency: 4,
        before: (what) =>
          under.through(what, Effect.repeat(Effect.yieldNow, { times: 5 })).pipe(
            Effect.andThen(
              Effect.suspend(() => {
                if (accepts === 0) return Effect.fail(new Transient({ reason: "down" }))
                accepts--
                return Effect.void
              }),
            ),
          ),
      })
      yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("all is told", () => a.told.length === 9)
      feed.append(range(10, 12).map(transfer))
      yield* waitFor("what follows is read", () => feed.emitted === 2)
      feed.fork(1, "b", range(21, 25).map(transfer), [], range(26, 27).map(transfer))
      yield* waitFor("the other branch is read", () => feed.emitted === 3)
      accepts = Number.POSITIVE_INFINITY
      yield* waitFor("all is told", () => a.words().includes("+27") && under.now.size === 0)
      yield* waitFor("all is told", () => a.told.length >= 9 + 4 + 7)
      const words = a.words()
      const first = words.findIndex((what) => what.startsWith("-"))
      const retracted = words.slice(first).filter((what) => what.startsWith("-"))
      assert.deepStrictEqual(words.slice(first, first + retracted.length), retracted)
      assert.includeMembers(retracted, ["-6", "-7", "-8", "-9"])
      assert.deepStrictEqual(
        words.slice(first + retracted.length).toSorted(),
        range(21, 27).map((value) => `+${value}`),
      )
      assert.deepStrictEqual(under.mixed, [])
      assert.isAbove(under.most, 1)
    }),
  )

  it.live("gets each delivery that was under way again when it is put anew, and each is finished once", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 6).map(transfer))
      const delivering = new Gate("closed")
      const a = receiver("a", { concurrency: 4, before: () => delivering.pass })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitFor("four are under way", () => a.attempts.length === 4)
      yield* resourcesOf(runtime).putSink({ id: "a", module: "host:a", config: {}, concurrency: 1 })
      yield* waitFor("they are attempted again", () => a.attempts.length === 8)
      yield* delivering.open
      yield* waitForCheckpoint(runtime, "test", 1)
      assert.deepStrictEqual(
        a.words().toSorted(),
        range(1, 6).map((value) => `+${value}`),
      )
    }),
  )

  it.live("has the budget of its throttle reserved by what is under way, and returned by what fails", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append(range(1, 3).map(transfer))
      const delivering = new Gate("closed")
      const a = receiver("a", {
        concurrency: 3,
        throttle: { maxDeliveries: 2, windowMs: 3_600_000 },
        retry: { maxAttempts: 1, initialBackoffMs: 1, maxBackoffMs: 1 },
        before: (what) =>
          what === "+1"
            ? Effect.andThen(delivering.pass, Effect.fail(new Transient({ reason: "down" })))
            : delivering.pass,
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      const [third] = yield* waitForLetters(runtime, 1)
      assert.deepInclude(third!, { what: "+3", attempts: 0 })
      yield* delivering.open
      yield* waitForLetters(runtime, 2)
      feed.append(range(4, 5).map(transfer))
      const letters = yield* waitForLetters(runtime, 3)
      assert.deepStrictEqual(
        letters.map(({ what }) => what),
        ["+3", "+1", "+5"],
      )
      assert.deepStrictEqual(a.words(), ["+2", "+4"])
    }),
  )
})
