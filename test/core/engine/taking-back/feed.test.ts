import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { Feed, type FeedItem } from "../../../../core/index.ts"
import { endOf } from "../../../../core/model/cursor.ts"
import { resourcesOf, startRuntime } from "../../../support/runtime.ts"
import { ScriptedFeed, scriptedSource } from "../../../support/scripted-source.ts"
import { databaseFile, definitions, transfer } from "../faults/support.ts"
import { listener, waitForEnd, waitForState, waitForWords } from "./support.ts"

/** What subscribers are shown, in short: the value of a match, and the life. */
const reader = () => {
  const values = new Map<string, unknown>()
  return (item: FeedItem): string => {
    if (item._tag === "CheckpointAdvanced") return `@${item.checkpoint.cursor.primary}`
    if (item._tag === "MatchRetracted") return `-${String(values.get(item.matchId))}.${item.life}`
    const { value } = item.match.event["args"] as { readonly value: string }
    values.set(item.match.id, value)
    return `+${value}.${item.life}`
  }
}

const kinds = ["MatchEmitted", "MatchRetracted"] as const

const take = Effect.fnUntraced(function* (runtime: Context.Context<Feed>, after: string | null, count: number) {
  const stream = yield* Context.get(runtime, Feed).open({ kinds, after })
  return yield* Effect.forkChild(stream.pipe(Stream.take(count), Stream.runCollect))
})

const matchesOf = (runtime: Context.Context<Feed>, first = 10, after: string | null = null) =>
  Context.get(runtime, Feed).matches({ first, after })

const shown = ["+1.1", "+2.1", "+3.1", "-2.1", "-3.1", "+20.1", "-20.1", "+2.2", "+3.2"]

describe("the feed of a network that takes something back", () => {
  it.live("shows a retraction behind each match that it showed, live, from the oldest, and over a restart", () =>
    Effect.gen(function* () {
      const path = yield* databaseFile
      const feed = new ScriptedFeed()
      const a = listener("a")
      const options = { path, plugins: [scriptedSource(feed)], resources: definitions([a.sink]) }
      const scope = yield* Scope.make()
      const first = yield* startRuntime(options).pipe(Scope.provide(scope))
      const live = yield* take(first, null, shown.length)
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      yield* waitForEnd(first, 3)
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3", "+20"])
      yield* waitForEnd(first, 3)
      feed.fork(1, "", [transfer(2)], [transfer(3)])
      const items = yield* Fiber.join(live)
      assert.deepStrictEqual(items.map(reader()), shown)
      yield* waitForEnd(first, 3)
      yield* Scope.close(scope, Exit.void)

      const runtime = yield* startRuntime(options)
      yield* waitForState(runtime, "RUNNING")
      const old = yield* Fiber.join(yield* take(runtime, "0", shown.length))
      assert.deepStrictEqual(old, items)
      const behind = yield* Fiber.join(yield* take(runtime, items[4]!.position, 4))
      assert.deepStrictEqual(behind, items.slice(5))
      const next = yield* take(runtime, items.at(-1)!.position, 2)
      yield* resourcesOf(runtime).rewindNetwork("test", endOf(2))
      const names = reader()
      items.map(names)
      assert.deepStrictEqual((yield* Fiber.join(next)).map(names), ["-3.2", "+3.3"])
    }),
  )

  it.live("leaves out of its matches what has ended, and a client that follows them hears of the rest", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      feed.append([transfer(1)], [transfer(2)], [transfer(3)])
      const a = listener("a")
      const runtime = yield* startRuntime({ plugins: [scriptedSource(feed)], resources: definitions([a.sink]) })
      yield* waitForEnd(runtime, 3)
      const page = yield* matchesOf(runtime, 2)
      feed.fork(1, "x", [transfer(20)], [])
      yield* waitForWords(a, ["+1", "+2", "+3", "-2", "-3", "+20"])
      const values = ({ items }: typeof page) =>
        items.map(({ match }) => (match.event["args"] as { readonly value: string }).value)
      assert.deepStrictEqual(values(page), ["1", "2"])
      assert.deepStrictEqual(values(yield* matchesOf(runtime)), ["1", "20"])
      // The bound of the first page was fixed before the fork: what came since is heard of behind it.
      const rest = yield* matchesOf(runtime, 2, page.endCursor)
      assert.isFalse(rest.hasNextPage)
      const follow = yield* Fiber.join(yield* take(runtime, rest.endCursor, 3))
      assert.deepStrictEqual(
        follow.map(({ _tag }) => _tag),
        ["MatchRetracted", "MatchRetracted", "MatchEmitted"],
      )
    }),
  )
})
