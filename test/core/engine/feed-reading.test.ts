import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Feed } from "../../../core/engine/feed.ts"
import { FeedHub } from "../../../core/engine/feed/hub.ts"
import { defaultLimits, type FeedLimits } from "../../../core/engine/feed/make.ts"
import { encodePayload } from "../../../core/model/sink-event.ts"
import { layerSqlite } from "../../../core/storage/sqlite/layer.ts"
import type { StoredFeedItem } from "../../../core/storage/feed-item.ts"
import { type NewMatch, type Owner, Storage } from "../../../core/storage/storage.ts"
import { Generator } from "../model/field-generator.ts"
import { lease } from "../storage/builders.ts"
import { END, followWhile, monitors, networks, pause, type Written } from "./feed-follow.ts"
import { feedLayer, items } from "./feed-harness.ts"
import { FeedTable } from "./feed-table.ts"

/** Writes items in groups, and tells most of them; the rest is left for the feed to find. */
const write = (table: FeedTable, random: Generator, groups: number) =>
  Effect.gen(function* () {
    const hub = yield* FeedHub
    const standing: Array<{ network: string; id: string; monitor: string }> = []
    const told = new Map<string, number>()
    for (let group = 0; group < groups; group++) {
      const network = networks[random.below(networks.length)]!
      for (let i = random.below(12); i >= 0; i--) {
        const index = standing.findIndex((match) => match.network === network)
        if (index >= 0 && random.below(4) === 0) {
          const [match] = standing.splice(index, 1)
          told.set(network, table.append(network, "retracted", match!.id, match!.monitor))
        } else {
          const monitor = monitors[random.below(monitors.length)]!
          const id = `${network}${(table.newest.get(network) ?? 0) + 1}`
          standing.push({ network, id, monitor })
          told.set(network, table.append(network, "match", id, monitor))
        }
      }
      if (random.below(5) > 0) {
        yield* hub.shown(network, told.get(network)!)
        if (random.below(3) === 0)
          yield* hub.checkpoint({ network, cursor: { primary: told.get(network)!, secondary: 1 }, updatedAt: group })
      }
      yield* pause(random, 30)
    }
    for (const network of networks)
      for (const monitor of monitors)
        for (const kind of ["match", "retracted"] as const)
          yield* hub.shown(network, table.append(network, kind, END, monitor))
  })

/** Mints into a real database; every shown match stands at its own primary, which is its feed position. */
class Minter implements Written {
  readonly newest = new Map<string, number>()
  readonly items = new Map<string, Array<StoredFeedItem>>()
  readonly kinds = ["match"] as const
  readonly #owners = new Map<string, Owner>()

  readonly mint = Effect.fnUntraced(
    { self: this },
    function* (this: Minter, network: string, names: ReadonlyArray<{ readonly id: string; readonly monitor: string }>) {
      const store = yield* Storage
      let owner = this.#owners.get(network)
      if (owner === undefined) {
        owner = yield* store.claim(network, lease())
        this.#owners.set(network, owner)
        yield* store.begin(owner, { primary: 0, secondary: 0 })
      }
      const before = this.newest.get(network) ?? 0
      const matches = names.map(({ id, monitor }, at): NewMatch => ({
        id,
        monitor,
        revision: "r",
        cursor: { primary: before + at + 1, secondary: 1 },
        time: 1000 + at,
        payload: encodePayload({ id, monitor, network, event: { n: before + at } }),
        sinks: [],
      }))
      const upTo = { primary: before + names.length, secondary: 1 }
      const minted = yield* store.mint(owner, {
        upTo,
        checkpoint: upTo,
        anchors: [],
        matches,
        offer: new Map(),
        durable: new Set(),
        effective: [],
      })
      assert.deepStrictEqual([minted.shown, minted.feedPosition], [names.length, before + names.length])
      this.newest.set(network, minted.feedPosition)
      const stored = yield* store.feedPage({ network, kinds: ["match"], after: before, limit: names.length })
      this.items.set(network, [...(this.items.get(network) ?? []), ...stored])
      return minted.feedPosition
    },
  )

  /** Groups of random size on random networks, with the ends of all of them last. */
  readonly write = Effect.fnUntraced({ self: this }, function* (this: Minter, random: Generator, groups: number) {
    const hub = yield* FeedHub
    for (let group = 0; group < groups; group++) {
      const network = networks[random.below(networks.length)]!
      const first = this.newest.get(network) ?? 0
      const names = Array.from({ length: 1 + random.below(12) }, (_, at) => ({
        id: `${network}${first + at}`,
        monitor: monitors[random.below(monitors.length)]!,
      }))
      const position = yield* this.mint(network, names)
      if (random.below(5) > 0) {
        yield* hub.shown(network, position)
        yield* hub.checkpoint({ network, cursor: { primary: position, secondary: 1 }, updatedAt: group })
      }
      yield* pause(random, 30)
    }
    for (const network of networks)
      yield* hub.shown(
        network,
        yield* this.mint(
          network,
          monitors.map((monitor) => ({ id: END + monitor, monitor })),
        ),
      )
  })
}

/** A feed on a new database, beside that database; counts the pages that the feed reads. */
const onDatabase = (limits: FeedLimits, reads = { pages: 0 }) =>
  Layer.unwrap(
    Storage.useSync((store) => {
      const feedPage: typeof store.feedPage = (page) => {
        reads.pages++
        return store.feedPage(page)
      }
      return feedLayer(Layer.succeed(Storage, { ...store, feedPage }), limits)
    }),
  ).pipe(Layer.provideMerge(Layer.fresh(layerSqlite({ path: ":memory:" }))))

const anyLimits = (random: Generator) =>
  random.below(4) === 0 ? defaultLimits : { log: 1 + random.below(20), page: 1 + random.below(6) }

describe("subscriptions", () => {
  it.live.prop(
    "see exactly the log whatever is written, however they rest, and wherever they reconnect",
    { seed: Schema.Int },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Generator(seed)
        const table = new FeedTable()
        for (const network of networks) if (random.below(2) === 0) table.create(network)
        for (let i = random.below(20); i > 0; i--) table.append("a", "match", `a${i}`, "m")
        yield* followWhile(table, seed, 12, write(table, random, 20)).pipe(
          Effect.provide(feedLayer(table.layer, anyLimits(random))),
        )
        return true
      }),
    { timeout: 60_000, arbitrary: { runs: 20 } },
  )

  it.live.prop(
    "see exactly what is minted into a database",
    { seed: Schema.Int },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Generator(seed)
        const minter = new Minter()
        yield* followWhile(minter, seed, 8, minter.write(random, 20)).pipe(
          Effect.provide(onDatabase(anyLimits(random))),
        )
        return true
      }),
    { timeout: 60_000, arbitrary: { runs: 10 } },
  )

  it.live("of 200 clients cost one read of each group that is written", () => {
    const reads = { pages: 0 }
    const minter = new Minter()
    return Effect.gen(function* () {
      const feed = yield* Feed
      const hub = yield* FeedHub
      const latest = Array.from({ length: 200 }, () => 0)
      for (let i = 0; i < latest.length; i++) {
        const stream = yield* feed.open({ kinds: items, after: null, ...(i % 2 === 0 ? { network: "a" } : {}) })
        yield* stream.pipe(
          Stream.runForEach((item) =>
            Effect.sync(() => {
              if (item._tag === "MatchEmitted") latest[i] = item.match.cursor.primary
            }),
          ),
          Effect.forkChild,
        )
      }
      for (let group = 0; group <= 20; group++) {
        if (group === 1) reads.pages = 0
        const names = Array.from({ length: 10 }, (_, at) => ({ id: `${group}-${at}`, monitor: "m" }))
        const position = yield* minter.mint("a", names)
        yield* hub.shown("a", position)
        while (latest.some((seen) => seen < position)) yield* Effect.yieldNow
      }
      assert.strictEqual(reads.pages, 20)
    }).pipe(Effect.provide(onDatabase(defaultLimits, reads)))
  })
})
