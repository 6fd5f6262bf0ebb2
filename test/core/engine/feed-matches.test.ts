import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Feed, type MatchesRequest } from "../../../core/engine/feed.ts"
import { FeedHub } from "../../../core/engine/feed/hub.ts"
import { defaultLimits } from "../../../core/engine/feed/make.ts"
import { feedLayer, items, short, take } from "./feed-harness.ts"
import { FeedTable } from "./feed-table.ts"

const run = <A, E>(body: (table: FeedTable) => Effect.Effect<A, E, Feed | FeedHub>) => {
  const table = new FeedTable()
  return body(table).pipe(Effect.provide(feedLayer(table.layer, defaultLimits)))
}

const page = (request: MatchesRequest) => Feed.use((feed) => feed.matches(request))

describe("the query of matches", () => {
  it.effect("pages through all networks, oldest first, each match once", () =>
    run((table) =>
      Effect.gen(function* () {
        for (const network of ["b", "a"]) for (let i = 1; i <= 5; i++) table.append(network, "match", `${network}${i}`)
        for (let first = 1; first <= 11; first++) {
          const seen: Array<string> = []
          let after: string | null = null
          let pages = 0
          for (let more = true; more; pages++) {
            const { items, hasNextPage, endCursor }: Effect.Success<ReturnType<typeof page>> = yield* page({
              first,
              after,
            })
            seen.push(...items.map(({ match }) => match.id))
            if (hasNextPage) assert.strictEqual(endCursor, items.at(-1)!.cursor)
            assert.strictEqual(items.length === first && seen.length < 10, hasNextPage)
            more = hasNextPage
            after = endCursor
          }
          assert.deepStrictEqual(seen, ["a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3", "b4", "b5"])
          assert.strictEqual(pages, Math.ceil(10 / first))
        }
      }),
    ),
  )

  it.effect("shows matches of the network and monitor that were asked for, as they were sent", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1", "m")
        table.append("a", "match", "2", "n")
        table.append("b", "match", "3", "m")
        const ids = (request: Omit<MatchesRequest, "first" | "after">) =>
          Effect.map(page({ ...request, first: 10, after: "0" }), (result) => result.items.map(({ match }) => match.id))
        assert.deepStrictEqual(yield* ids({ network: "a" }), ["1", "2"])
        assert.deepStrictEqual(yield* ids({ monitor: "m" }), ["1", "3"])
        assert.deepStrictEqual(yield* ids({ network: "none" }), [])
        const { items } = yield* page({ network: "b", first: 1, after: null })
        assert.deepStrictEqual(items[0]!.match, {
          id: "3",
          monitor: "m",
          network: "b",
          event: { n: 1 },
          cursor: { primary: 1, secondary: 1 },
          time: 1001,
        })
      }),
    ),
  )

  it.effect(
    "ends at what was newest at its first page; who follows from there hears of all later, retractions too",
    () =>
      run((table) =>
        Effect.gen(function* () {
          for (let i = 1; i <= 4; i++) table.append("a", "match", `a${i}`)
          table.append("a", "retracted", "a2")
          const first = yield* page({ first: 2, after: null })
          assert.deepStrictEqual(
            first.items.map(({ match }) => match.id),
            ["a1", "a3"],
          )
          table.append("a", "retracted", "a1")
          table.append("a", "match", "a5")
          table.append("b", "match", "b1")
          const last = yield* page({ first: 2, after: first.endCursor })
          assert.deepStrictEqual([last.items.map(({ match }) => match.id), last.hasNextPage], [["a4"], false])
          yield* FeedHub.use((hub) => hub.shown("a", 7))
          yield* FeedHub.use((hub) => hub.shown("b", 1))
          const seen = yield* take({ kinds: items, after: last.endCursor }, 3)
          assert.deepStrictEqual(seen.map(short).toSorted(), ["+a5", "+b1", "-a1"])
          const again = yield* page({ first: 10, after: last.endCursor })
          assert.deepStrictEqual(
            again.items.map(({ match }) => match.id),
            ["a5", "b1"],
          )
        }),
      ),
  )

  it.effect("has cursors that are feed positions", () =>
    run((table) =>
      Effect.gen(function* () {
        for (let i = 1; i <= 3; i++) table.append("a", "match", `${i}`)
        yield* FeedHub.use((hub) => hub.shown("a", 3))
        const { items: edges } = yield* page({ first: 10, after: null })
        assert.deepStrictEqual((yield* take({ kinds: items, after: edges[0]!.cursor }, 2)).map(short), ["+2", "+3"])
        const [one] = yield* take({ kinds: items, after: "0" }, 1)
        const behind = yield* page({ first: 10, after: one!.position })
        assert.deepStrictEqual(
          behind.items.map(({ match }) => match.id),
          ["2", "3"],
        )
      }),
    ),
  )

  it.effect("shows at most 1000 on a page", () =>
    run((table) =>
      Effect.gen(function* () {
        for (let i = 1; i <= 1001; i++) table.append("a", "match", `${i}`)
        const result = yield* page({ first: 5000, after: null })
        assert.deepStrictEqual([result.items.length, result.hasNextPage], [1000, true])
      }),
    ),
  )

  it.effect("is refused a cursor of nobody, of another network argument, or behind which matches were trimmed", () =>
    run((table) =>
      Effect.gen(function* () {
        for (let i = 1; i <= 9; i++) table.append("a", "match", `${i}`)
        const first = yield* page({ first: 2, after: null })
        const refused = (request: Omit<MatchesRequest, "first">) => Effect.flip(page({ first: 2, ...request }))
        assert.strictEqual((yield* refused({ after: "x" }))._tag, "InvalidPosition")
        assert.strictEqual((yield* refused({ network: "a", after: first.endCursor }))._tag, "InvalidPosition")
        table.trim("a", 4)
        const stale = yield* refused({ after: first.endCursor })
        if (stale._tag !== "StalePosition") return assert.fail(stale._tag)
        const rest = yield* page({ first: 2, after: stale.oldest })
        assert.deepStrictEqual(
          rest.items.map(({ match }) => match.id),
          ["5", "6"],
        )
      }),
    ),
  )
})
