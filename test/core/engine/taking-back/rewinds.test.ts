import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict, NotFound } from "../../../../core/index.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { definitions, Gate, transfer, waitForNetwork } from "../faults/support.ts"
import { isRetraction, listener, waitForEnd, waitForState, waitForWords } from "./support.ts"

/** Blocks of one transfer each, with the number of the block. */
const numbered = (blocks: number) => {
  const feed = new ScriptedFeed()
  feed.append(...Array.from({ length: blocks }, (_, i) => [transfer(i + 1)]))
  return feed
}

const start = (feed: ScriptedFeed, { sink }: ReturnType<typeof listener>, config: object = {}) =>
  startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([sink], config) })

describe("a network that is rewound", () => {
  it.live("retracts what it told, and tells it again in its next life", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const runtime = yield* start(numbered(3), a)
      yield* waitForEnd(runtime, 3)
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(1))
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3", "+2", "+3"])
      const [, two, three, ...again] = a.told
      assert.deepStrictEqual(
        again.map(({ id }) => id),
        [`${two!.id}-r`, `${three!.id}-r`, `${two!.id}-2`, `${three!.id}-2`],
      )
      assert.deepStrictEqual([again[2]!.body, again[3]!.body], [two!.body, three!.body])
      yield* waitForEnd(runtime, 3)
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(2))
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3", "+2", "+3", "-3", "+3"])
      assert.deepStrictEqual(
        a.told.slice(-2).map(({ id }) => id),
        [`${three!.id}-2-r`, `${three!.id}-3`],
      )
    }),
  )

  it.live("is refused above the checkpoint, below the start, before it began, and when there is none", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const feed = numbered(6)
      const runtime = yield* start(feed, a, { start: 4 })
      yield* waitForEnd(runtime, 6)
      const resources = resourcesOf(runtime)
      const refused = Effect.fnUntraced(function* (id: string, to: number, why: string) {
        const error = yield* Effect.flip(resources.rewindNetwork(id, endOf(to)))
        assert.instanceOf(error, Conflict)
        assert.strictEqual(error.message, `network "${id}" cannot be rewound to ${to}: ${why}`)
      })
      yield* refused("test", 7, "its checkpoint is 6")
      yield* refused("test", 2, "it started behind 3")
      yield* resources.putNetwork({ id: "idle", module: "scripted", config: {} })
      yield* refused("idle", 0, "it has not begun yet")
      assert.instanceOf(yield* Effect.flip(resources.rewindNetwork("none", endOf(1))), NotFound)
      assert.deepStrictEqual(a.words(), ["+4", "+5", "+6"])
      yield* resources.rewindNetwork("test", endOf(3))
      yield* waitForWords(a, ["+4", "+5", "+6", "-4", "-5", "-6", "+4", "+5", "+6"])
    }),
  )

  it.live("into the middle of a block keeps what lies before that point in it", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2), transfer(3), transfer(4)], [transfer(5)])
      const runtime = yield* start(feed, a)
      yield* waitForEnd(runtime, 3)
      yield* resourcesOf(runtime).rewindNetwork("test", { primary: 2, secondary: 1_048_576 })
      yield* waitForWords(a, ["+1", "+2", "+3", "+4", "+5", "-3", "-4", "-5", "+3", "+4", "+5"])
      yield* waitForEnd(runtime, 3)
    }),
  )

  it.live("while it is paused retracts at once, stays paused, and goes on from there when it is resumed", () =>
    Effect.gen(function* () {
      const a = listener("a")
      const runtime = yield* start(numbered(3), a)
      const resources = resourcesOf(runtime)
      yield* waitForEnd(runtime, 3)
      yield* resources.pauseNetwork("test")
      yield* waitForState(runtime, "PAUSED")
      yield* resources.rewindNetwork("test", endOf(1))
      yield* waitForNetwork(
        runtime,
        "it rests at 1",
        ({ state, checkpoint }) => state === "PAUSED" && checkpoint?.cursor.primary === 1,
      )
      assert.deepStrictEqual(a.words(), ["+1", "+2", "+3", "-2", "-3"])
      yield* resources.resumeNetwork("test")
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3", "+2", "+3"])
    }),
  )

  it.live("again while a sink keeps it waiting goes to the lower of the two points", () =>
    Effect.gen(function* () {
      const sending = new Gate("closed")
      let held = true
      const a = listener("a", { before: (event) => (held && isRetraction(event) ? sending.pass : Effect.void) })
      const b = listener("b")
      const feed = numbered(5)
      const runtime = yield* startRuntime({
        plugins: [scriptedSource(feed)],
        // So long an attempt that hangs is waited for.
        settings: { drainTimeoutMs: 200 },
        resources: {
          ...definitions([a.sink, b.sink]),
          monitors: [{ id: "all", network: "test", selector: { name: "Transfer" }, sinks: ["a", "b"] }],
        },
      })
      const resources = resourcesOf(runtime)
      yield* waitForEnd(runtime, 5)
      yield* resources.rewindNetwork("test", endOf(3))
      yield* sending.reached
      yield* waitForWords(b, ["+1", "+2", "+3", "+4", "+5", "-4", "-5"])
      yield* resources.rewindNetwork("test", endOf(1))
      yield* waitForWords(b, ["+1", "+2", "+3", "+4", "+5", "-4", "-5", "-2", "-3"])
      yield* resources.rewindNetwork("test", endOf(2))
      const again = yield* Effect.flip(resources.rewindNetwork("test", endOf(6)))
      assert.instanceOf(again, Conflict)
      held = false
      yield* sending.open
      const all = ["+1", "+2", "+3", "+4", "+5", "-4", "-5", "-2", "-3", "+2", "+3", "+4", "+5"]
      yield* waitForWords(a, all)
      yield* waitForWords(b, all)
      yield* waitForEnd(runtime, 5)
      assert.deepStrictEqual(
        [...a.words(), ...b.words()].filter((word) => word === "-4" || word === "-2"),
        ["-4", "-2", "-4", "-2"],
      )
    }),
  )
})
