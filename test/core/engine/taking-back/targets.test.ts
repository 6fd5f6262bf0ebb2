import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Permanent } from "../../../../core/index.ts"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../../support/scripted-source.ts"
import { allTransfers, definitions, Gate, startOver, transfer } from "../faults/support.ts"
import { isRetraction, lettersOf, listener, waitForEnd, waitForState, waitForWords } from "./support.ts"

describe("what is retracted", () => {
  it.live("is what was offered; what was never attempted is neither sent nor retracted", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const total = 300
      feed.append(
        [transfer(0)],
        Array.from({ length: total }, (_, i) => transfer(i + 1)),
      )
      const delivering = new Gate("closed")
      let offered = 0
      let attempted = 0
      const a = listener("a", {
        before: (event) => {
          if (isRetraction(event)) return Effect.void
          return ++attempted === 1 ? Effect.void : delivering.pass
        },
      })
      const { runtime } = yield* startOver(
        ({ retract, owed }) => ({
          retract: (owner, limit) =>
            Effect.andThen(
              Effect.map(owed("test", "a", { afterSeq: 0, limit: 1_000 }), (rows) => {
                offered ||= rows.filter(({ state, cursor }) => state === "offered" && cursor.primary === 2).length
              }),
              retract(owner, limit),
            ),
        }),
        {
          plugins: [scriptedSource(feed)],
          resources: definitions([a.sink]),
          settings: { drainTimeoutMs: 100 },
        },
      )
      yield* delivering.reached
      yield* waitUntil("all is minted", () => feed.emitted === 1)
      feed.fork(1, "x", [transfer(1_000)], [])
      yield* waitUntil("its replacement is offered", () => attempted === 3)
      yield* delivering.open
      yield* waitForEnd(runtime, 3)
      assert.isAbove(offered, 0)
      assert.isAtMost(offered, 64)
      // Of the second block it was offered the first transfer alone; what waited beside it may have been.
      assert.deepStrictEqual(a.words(), ["+0", "-1", ...Array(offered - 1).fill("-?"), "+1000"])
      assert.strictEqual(new Set(a.told.map(({ id }) => id)).size, offered + 2)
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
    }),
  )

  it.live("is what was under way as well: its attempt is finished first, and what it said is heeded", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const delivering = new Gate("closed")
      const a = listener("a", { before: (event) => (isRetraction(event) ? Effect.void : delivering.pass) })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* delivering.reached
      feed.fork(0, "x", [transfer(20)], [], [])
      yield* waitForState(runtime, "INVALIDATING")
      assert.deepStrictEqual(a.words(), [])
      yield* delivering.open
      yield* waitForEnd(runtime, 3)
      // The second was to follow at once, and is not sent any more.
      assert.deepStrictEqual(a.words(), ["+1", "-1", "-?", "+20"])
    }),
  )

  it.live("is also what died, and lies behind the fork; siblings are left alone", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const sibling = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2), transfer(3)])
      sibling.append([transfer(101)], [transfer(102)])
      const a = listener("a", {
        before: (event) =>
          event.type === "match" && ["1", "3"].includes(a.valueOf(event.id)!)
            ? Effect.fail(new Permanent({ reason: "odd" }))
            : Effect.void,
      })
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed), scriptedSource(sibling, "other")],
        resources: {
          networks: [
            { id: "test", module: "scripted", config: {} },
            { id: "sibling", module: "other", config: {} },
          ],
          monitors: [allTransfers(["a"]), { ...allTransfers(["a"]), id: "others", network: "sibling" }],
          sinks: [a.sink],
        },
      })
      yield* waitForEnd(runtime, 2)
      yield* waitUntil("the sibling is told", () => a.words().includes("+102"))
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForEnd(runtime, 3)
      yield* waitUntil("the replacement is told", () => a.words().includes("+20"))
      const own = a.words().filter((word) => !word.includes("10"))
      assert.deepStrictEqual(own, ["+2", "-2", "-3", "+20"])
      assert.notInclude(a.words(), "-101")
      assert.notInclude(a.words(), "-102")
      // The letter of what was taken back stays, and cannot be sent again.
      assert.deepStrictEqual(
        (yield* lettersOf(runtime)).map(({ cursor, whyNot }) => [cursor.primary, whyNot]),
        [
          [1, null],
          [2, "RETRACTED"],
        ],
      )
    }),
  )

  it.live("by two networks at once is told by each, whatever the other waits for", () =>
    Effect.gen(function* () {
      const feeds = { test: new ScriptedFeed(), sibling: new ScriptedFeed() }
      feeds.test.append([transfer(1)])
      feeds.sibling.append([transfer(101)])
      const sending = new Gate("closed")
      const a = listener("a", { before: (event) => (isRetraction(event) ? sending.pass : Effect.void) })
      const b = listener("b")
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feeds.test, "test"), scriptedSource(feeds.sibling, "sibling")],
        resources: {
          networks: ["test", "sibling"].map((id) => ({ id, module: id, config: {} })),
          monitors: [allTransfers(["a"]), { ...allTransfers(["b"]), id: "others", network: "sibling" }],
          sinks: [a.sink, b.sink],
        },
      })
      yield* waitForEnd(runtime, 1)
      yield* waitForWords(b, ["+101"])
      feeds.test.fork(0, "x", [transfer(2)])
      yield* sending.reached
      feeds.sibling.fork(0, "x", [transfer(102)])
      yield* waitForWords(b, ["+101", "-101", "+102"])
      assert.deepStrictEqual(a.words(), ["+1"])
      yield* sending.open
      yield* waitForWords(a, ["+1", "-1", "+2"])
    }),
  )

  it.live("and dies is owed again when a later fork lies lower", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      let refuses = true
      const a = listener("a", {
        before: (event) =>
          refuses && isRetraction(event) ? Effect.fail(new Permanent({ reason: "not now" })) : Effect.void,
      })
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 3)
      feed.fork(2, "x", [transfer(30)], [])
      yield* waitForEnd(runtime, 4)
      yield* waitForWords(a, ["+1", "+2", "+3", "+30"])
      assert.deepStrictEqual(
        (yield* lettersOf(runtime)).map(({ kind, reason, attempts }) => [kind, reason, attempts]),
        [["retracted", "permanent: not now", 1]],
      )
      refuses = false
      feed.fork(1, "y", [transfer(21)], [transfer(31)], [], [])
      yield* waitForEnd(runtime, 5)
      yield* waitForWords(a, ["+1", "+2", "+3", "+30", "-3", "-2", "-30", "+21", "+31"])
      assert.deepStrictEqual(yield* lettersOf(runtime), [])
    }),
  )

  it.live("goes to the sinks that were told, whatever the monitors say now", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const a = listener("a")
      const b = listener("b")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink, b.sink]) })
      yield* waitForEnd(runtime, 2)
      yield* resourcesOf(runtime).putMonitor(allTransfers(["b"]))
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForWords(b, ["+20"])
      assert.deepStrictEqual(a.words(), ["+1", "+2", "-2"])
      yield* waitForEnd(runtime, 3)
      yield* resourcesOf(runtime).deleteMonitor("all")
      feed.fork(0, "y", [], [], [], [])
      yield* waitForWords(a, ["+1", "+2", "-2", "-1"])
      yield* waitForWords(b, ["+20", "-20"])
    }),
  )

  it.live("is not waited for when its sink was deleted since", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)])
      const a = listener("a")
      const b = listener("b")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink, b.sink]) })
      yield* waitForEnd(runtime, 2)
      yield* resourcesOf(runtime).putMonitor(allTransfers(["b"]))
      yield* resourcesOf(runtime).deleteSink("a")
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForWords(b, ["+20"])
      yield* waitForEnd(runtime, 3)
      assert.deepStrictEqual(
        (yield* lettersOf(runtime)).map(({ kind, sink, reason, attempts }) => [kind, sink, reason, attempts]),
        [["retracted", "a", "permanent: sink a does not exist", 0]],
      )
    }),
  )
})
