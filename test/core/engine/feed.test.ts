import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Feed, type FeedItem, type FeedRequest } from "../../../core/engine/feed.ts"
import { FeedHub } from "../../../core/engine/feed/hub.ts"
import { defaultLimits } from "../../../core/engine/feed/make.ts"
import { everything, feedLayer, items, short, take } from "./feed-harness.ts"
import { FeedTable } from "./feed-table.ts"

const run = <A, E>(
  body: (table: FeedTable) => Effect.Effect<A, E, Feed | FeedHub>,
  limits = defaultLimits,
  table = new FeedTable(),
) => body(table).pipe(Effect.provide(feedLayer(table.layer, limits)))

const checkpoint = (network: string, primary: number) => ({
  network,
  cursor: { primary, secondary: 0 },
  updatedAt: primary,
})

/** Follows in the background; what it sees comes in the queue, one item at a time and only as it is taken. */
const follow = Effect.fnUntraced(function* (request: FeedRequest) {
  const seen = yield* Queue.bounded<FeedItem>(1)
  const stream = yield* Feed.use((feed) => feed.open(request))
  const fiber = yield* Effect.forkChild(Stream.runForEach(stream, (item) => Queue.offer(seen, item)))
  return { next: Queue.take(seen), fiber }
})

const next = (queue: { readonly next: Effect.Effect<FeedItem> }, count: number) =>
  Effect.map(Effect.all(Array.from({ length: count }, () => queue.next)), (all) => all.map(short))

const ids = (request: Omit<FeedRequest, "after">, count: number) =>
  Effect.map(take({ ...request, after: "0" }, count), (seen) => seen.map(short))

const refused = (request: Omit<FeedRequest, "kinds">) =>
  Effect.flip(Feed.use((feed) => feed.open({ kinds: items, ...request })))

describe("a subscription", () => {
  it.effect("from null sees what comes after its acceptance, however late it is pulled", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1")
        const stream = yield* Feed.use((feed) => feed.open({ kinds: items, after: null }))
        table.append("a", "match", "2")
        table.append("b", "match", "3")
        yield* FeedHub.use((hub) => hub.shown("a", 2))
        yield* FeedHub.use((hub) => hub.shown("b", 1))
        table.append("a", "retracted", "2")
        yield* FeedHub.use((hub) => hub.shown("a", 3))
        const seen = yield* stream.pipe(Stream.take(3), Stream.runCollect)
        assert.deepStrictEqual(seen.filter((item) => item.network === "a").map(short), ["+2", "-2"])
        assert.deepStrictEqual(seen.filter((item) => item.network === "b").map(short), ["+3"])
      }),
    ),
  )

  it.effect("from 0 sees all that is kept, and from an item's position what is behind it, once", () =>
    run((table) =>
      Effect.gen(function* () {
        for (let i = 1; i <= 5; i++) table.append("a", "match", `${i}`)
        table.trim("a", 2)
        yield* FeedHub.use((hub) => hub.shown("a", 5))
        const all = yield* take({ kinds: items, after: "0" }, 3)
        assert.deepStrictEqual(all.map(short), ["+3", "+4", "+5"])
        const rest = yield* take({ kinds: items, after: all[0]!.position }, 2)
        assert.deepStrictEqual(rest.map(short), ["+4", "+5"])
        assert.deepStrictEqual(
          rest.map((item) => item.position),
          all.slice(1).map((item) => item.position),
        )
      }),
    ),
  )

  it.effect("shows only the network, monitor and kinds that it asked for", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1", "m")
        table.append("a", "match", "2", "n")
        table.append("b", "match", "3", "m")
        table.append("a", "retracted", "2", "n")
        table.append("a", "match", "4", "m")
        yield* FeedHub.use((hub) => hub.shown("a", 4))
        yield* FeedHub.use((hub) => hub.shown("b", 1))
        assert.deepStrictEqual(yield* ids({ network: "a", monitor: "m", kinds: items }, 2), ["+1", "+4"])
        assert.deepStrictEqual(yield* ids({ kinds: ["MatchRetracted"] }, 1), ["-2"])
        assert.deepStrictEqual(yield* ids({ network: "b", kinds: items }, 1), ["+3"])
        assert.deepStrictEqual(yield* ids({ monitor: "m", kinds: ["MatchEmitted"] }, 3), ["+1", "+4", "+3"])
      }),
    ),
  )

  it.effect("sees within a second what nobody announced, also of a network that is new", () =>
    run((table) =>
      Effect.gen(function* () {
        const live = yield* follow({ kinds: items, after: null })
        table.append("new", "match", "1")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* next(live, 1), ["+1"])
      }),
    ),
  )

  it.effect("gives no network more than its turn, so that a long one starves nobody", () =>
    run(
      (table) =>
        Effect.gen(function* () {
          for (let i = 1; i <= 100; i++) table.append("a", "match", `a${i}`)
          for (let i = 1; i <= 2; i++) table.append("b", "match", `b${i}`)
          yield* FeedHub.use((hub) => hub.shown("a", 100))
          yield* FeedHub.use((hub) => hub.shown("b", 2))
          const seen = (yield* take({ kinds: items, after: "0" }, 6)).map(short)
          assert.deepStrictEqual(seen, ["+a1", "+a2", "+a3", "+a4", "+b1", "+b2"])
        }),
      { log: 8, page: 4 },
    ),
  )

  it.effect("is refused a position of another network argument, of another database, or of nobody", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1")
        yield* FeedHub.use((hub) => hub.shown("a", 1))
        const [item] = yield* take({ kinds: items, after: "0" }, 1)
        for (const request of [{ network: "a", after: item!.position }, { after: "x" }]) {
          const error = yield* refused(request)
          assert.strictEqual(error._tag, "InvalidPosition")
        }
        table.newest.set("a", 0)
        assert.strictEqual((yield* refused({ after: item!.position }))._tag, "InvalidPosition")
      }),
    ),
  )

  it.effect("that ends while it waits frees its place, and nothing is read for nobody", () =>
    run((table) =>
      Effect.gen(function* () {
        table.create("a")
        const live = yield* follow({ kinds: items, after: null })
        table.append("a", "match", "1")
        yield* FeedHub.use((hub) => hub.shown("a", 1))
        assert.deepStrictEqual(yield* next(live, 1), ["+1"])
        yield* Fiber.interrupt(live.fiber)
        const { pages } = table
        table.append("a", "match", "2")
        yield* FeedHub.use((hub) => hub.shown("a", 2))
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual(table.pages, pages)
        assert.deepStrictEqual((yield* take({ kinds: items, after: "0" }, 2)).map(short), ["+1", "+2"])
      }),
    ),
  )

  it.effect("goes on when storage failed for a while under the shared reader", () =>
    run((table) =>
      Effect.gen(function* () {
        table.create("a")
        const live = yield* follow({ kinds: items, after: null })
        yield* TestClock.adjust("1 second")
        table.broken = "disk on fire"
        table.append("a", "match", "1")
        yield* FeedHub.use((hub) => hub.shown("a", 1))
        yield* TestClock.adjust("5 seconds")
        table.broken = null
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(yield* next(live, 1), ["+1"])
      }),
    ),
  )
})

describe("a stale position", () => {
  it.effect("is refused only where the filter would show a trimmed item, with an oldest that works", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1", "m")
        table.append("a", "match", "2", "n")
        table.append("a", "match", "3", "m")
        yield* FeedHub.use((hub) => hub.shown("a", 3))
        const [one] = yield* take({ kinds: items, after: "0" }, 1)
        table.trim("a", 2)
        const after = one!.position
        assert.deepStrictEqual((yield* take({ kinds: items, monitor: "m", after }, 1)).map(short), ["+3"])
        assert.deepStrictEqual((yield* take({ kinds: everything, monitor: "m", after }, 1)).map(short), ["+3"])
        const stale = yield* Effect.flip(Feed.use((feed) => feed.open({ kinds: items, after })))
        if (stale._tag !== "StalePosition") return assert.fail(stale._tag)
        assert.deepStrictEqual((yield* take({ kinds: items, after: stale.oldest }, 1)).map(short), ["+3"])
        assert.deepStrictEqual((yield* take({ kinds: items, monitor: "n", after: stale.oldest }, 0)).map(short), [])
      }),
    ),
  )

  it.effect("ends a stream whose reader rested until trimming overtook it", () =>
    run(
      (table) =>
        Effect.gen(function* () {
          table.create("a")
          const live = yield* follow({ kinds: items, after: null })
          for (let i = 1; i <= 3; i++) table.append("a", "match", `${i}`)
          yield* FeedHub.use((hub) => hub.shown("a", 3))
          assert.deepStrictEqual(yield* next(live, 1), ["+1"])
          for (let i = 4; i <= 40; i++) table.append("a", "match", `${i}`)
          yield* FeedHub.use((hub) => hub.shown("a", 40))
          yield* TestClock.adjust("1 second")
          table.trim("a", 30)
          const seen: Array<string> = []
          const drain = Effect.forever(Effect.map(live.next, (item) => seen.push(short(item))))
          const error = yield* Effect.flip(Effect.raceFirst(Fiber.join(live.fiber), drain))
          if (error._tag !== "StalePosition") return assert.fail(error._tag)
          assert.isBelow(seen.length, 30)
          assert.deepStrictEqual(
            seen,
            Array.from(seen, (_, at) => `+${at + 2}`),
          )
          const rest = yield* take({ kinds: items, after: error.oldest }, 10)
          assert.deepStrictEqual(
            rest.map(short),
            Array.from({ length: 10 }, (_, at) => `+${at + 31}`),
          )
        }),
      { log: 4, page: 2 },
    ),
  )

  it.effect("is told when trimming happens between two pages, or while a page is read", () =>
    run(
      (table) =>
        Effect.gen(function* () {
          for (let i = 1; i <= 40; i++) table.append("a", "match", `${i}`)
          yield* FeedHub.use((hub) => hub.shown("a", 40))
          const [one] = yield* take({ kinds: items, after: "0" }, 1)
          let reads = 0
          table.beforePage = () => {
            if (++reads === 3) table.trim("a", 20)
          }
          const stream = yield* Feed.use((feed) => feed.open({ kinds: items, after: one!.position }))
          const seen: Array<string> = []
          const error = yield* Effect.flip(
            Stream.runForEach(stream, (item) => Effect.sync(() => seen.push(short(item)))),
          )
          assert.strictEqual(error._tag, "StalePosition")
          assert.deepStrictEqual(
            seen,
            Array.from(seen, (_, at) => `+${at + 2}`),
          )
        }),
      { log: 4, page: 2 },
    ),
  )
})

describe("checkpoints in the feed", () => {
  it.effect("come after the items that they cover, with the position of the newest item before them", () =>
    run((table) =>
      Effect.gen(function* () {
        table.create("a")
        const live = yield* follow({ kinds: everything, after: null })
        const hub = yield* FeedHub
        table.append("a", "match", "1")
        table.append("a", "match", "2")
        yield* hub.shown("a", 2)
        yield* hub.checkpoint(checkpoint("a", 7))
        const seen = yield* Effect.all([live.next, live.next, live.next])
        assert.deepStrictEqual(seen.map(short), ["+1", "+2", "a@7"])
        assert.strictEqual(seen[2].position, seen[1].position)
        yield* hub.checkpoint(checkpoint("a", 8))
        assert.deepStrictEqual(yield* next(live, 1), ["a@8"])
      }),
    ),
  )

  it.effect("are live only, and carry the position of the acceptance before the first item", () =>
    run((table) =>
      Effect.gen(function* () {
        table.append("a", "match", "1")
        const hub = yield* FeedHub
        yield* hub.checkpoint(checkpoint("a", 7))
        const live = yield* follow({ kinds: everything, after: null })
        yield* hub.checkpoint(checkpoint("a", 8))
        const first = yield* live.next
        assert.strictEqual(short(first), "a@8")
        table.append("a", "match", "2")
        yield* hub.shown("a", 2)
        assert.deepStrictEqual((yield* take({ kinds: items, after: first.position }, 1)).map(short), ["+2"])
      }),
    ),
  )

  it.effect("coalesce while a reader rests, and no item does", () =>
    run(
      (table) =>
        Effect.gen(function* () {
          table.create("a")
          table.create("b")
          const live = yield* follow({ kinds: everything, after: null })
          const hub = yield* FeedHub
          for (let i = 1; i <= 50; i++) {
            yield* hub.shown("a", table.append("a", "match", `${i}`))
            yield* hub.checkpoint(checkpoint("a", i))
            yield* hub.checkpoint(checkpoint("b", i))
            yield* TestClock.adjust("1 millis")
          }
          const seen: Array<string> = []
          while (!seen.includes("a@50") || !seen.includes("b@50")) seen.push(short(yield* live.next))
          assert.deepStrictEqual(
            seen.filter((item) => item.startsWith("+")),
            Array.from({ length: 50 }, (_, at) => `+${at + 1}`),
          )
          assert.isBelow(seen.length, 70)
          assert.isAbove(seen.indexOf("a@50"), seen.indexOf("+50"))
        }),
      { log: 8, page: 4 },
    ),
  )
})

describe("the stream of checkpoints", () => {
  it.effect("begins with the present one of each network, then tells each advance once", () =>
    run((table) =>
      Effect.gen(function* () {
        table.create("a")
        table.create("b")
        table.create("none")
        table.checkpoints.set("a", { cursor: { primary: 5, secondary: 0 }, at: 5 })
        table.checkpoints.set("b", { cursor: { primary: 9, secondary: 0 }, at: 9 })
        const feed = yield* Feed
        const hub = yield* FeedHub
        const seen = yield* Queue.unbounded<string>()
        const started = yield* Deferred.make<void>()
        yield* feed.checkpoints().pipe(
          Stream.runForEach(({ network, cursor }) =>
            Effect.andThen(Queue.offer(seen, `${network}@${cursor.primary}`), Deferred.succeed(started, undefined)),
          ),
          Effect.forkChild,
        )
        yield* Deferred.await(started)
        yield* hub.checkpoint(checkpoint("a", 5))
        yield* TestClock.adjust("1 millis")
        yield* hub.checkpoint(checkpoint("a", 6))
        yield* hub.checkpoint(checkpoint("a", 6))
        yield* TestClock.adjust("1 millis")
        yield* hub.checkpoint({ ...checkpoint("a", 3), updatedAt: 7 })
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* Queue.takeAll(seen), ["a@5", "b@9", "a@6", "a@3"])
      }),
    ),
  )

  it.effect("of one network tells of that one, and within a second what another process wrote", () =>
    run((table) =>
      Effect.gen(function* () {
        table.create("a")
        table.create("b")
        table.checkpoints.set("b", { cursor: { primary: 9, secondary: 0 }, at: 9 })
        const feed = yield* Feed
        const fiber = yield* feed.checkpoints("a").pipe(Stream.take(2), Stream.runCollect, Effect.forkChild)
        yield* TestClock.adjust("1 second")
        table.checkpoints.set("a", { cursor: { primary: 1, secondary: 0 }, at: 10 })
        yield* TestClock.adjust("1 second")
        table.checkpoints.set("a", { cursor: { primary: 2, secondary: 0 }, at: 11 })
        yield* TestClock.adjust("1 second")
        const views = yield* Fiber.join(fiber)
        assert.deepStrictEqual(
          views.map(({ network, cursor, updatedAt }) => [network, cursor.primary, updatedAt]),
          [
            ["a", 1, 10],
            ["a", 2, 11],
          ],
        )
      }),
    ),
  )
})
