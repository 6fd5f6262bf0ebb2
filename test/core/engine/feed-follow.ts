import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Feed, type FeedItem, type FeedRequest } from "../../../core/engine/feed.ts"
import type { Match } from "../../../core/model/sink-event.ts"
import type { StoredFeedItem } from "../../../core/storage/feed-item.ts"
import { Generator } from "../model/field-generator.ts"

export const networks = ["a", "b", "c"]
export const monitors = ["m", "n"]
/** Ids that begin with it are the last of their network, monitor and kind. */
export const END = "end"

/** Everything that was written to the feed. The cursor's primary of an item is its position. */
export interface Written {
  readonly newest: ReadonlyMap<string, number>
  readonly items: ReadonlyMap<string, ReadonlyArray<StoredFeedItem>>
  /** The kinds that have an end. */
  readonly kinds: ReadonlyArray<StoredFeedItem["kind"]>
}

/** Lets other fibers go first, a random number of times below the limit. */
export const pause = (random: Generator, limit: number) =>
  Effect.gen(function* () {
    for (let i = random.below(limit); i > 0; i--) yield* Effect.yieldNow
  })

const isEnd = (item: FeedItem): boolean =>
  item._tag !== "CheckpointAdvanced" && (item._tag === "MatchEmitted" ? item.match.id : item.matchId).startsWith(END)

const wants = (request: Omit<FeedRequest, "after">, item: StoredFeedItem): boolean =>
  (request.network === undefined || request.network === item.network) &&
  (request.monitor === undefined || request.monitor === item.monitor) &&
  request.kinds.includes(item.kind === "match" ? "MatchEmitted" : "MatchRetracted")

/** Reads until the end of all that it asked for was shown, with rests and reconnects at any item. */
const follow = (log: Written, random: Generator, request: Omit<FeedRequest, "after">, from: string | null) =>
  Effect.gen(function* () {
    const feed = yield* Feed
    const seen: Array<FeedItem> = []
    const count = () => new Map(networks.map((id) => [id, log.newest.get(id) ?? 0]))
    const scope = request.network === undefined ? networks.length : 1
    const perNetwork = request.monitor === undefined ? monitors.length : 1
    const kinds = log.kinds.filter((kind) =>
      request.kinds.includes(kind === "match" ? "MatchEmitted" : "MatchRetracted"),
    )
    const ends = scope * perNetwork * kinds.length
    const progress = { ended: 0 }
    let after = from
    const before = count()
    let stream = yield* feed.open({ ...request, after })
    const accepted = count()
    for (; progress.ended < ends; stream = yield* feed.open({ ...request, after })) {
      let rest = 1 + random.below(40)
      yield* stream.pipe(
        Stream.runForEachWhile((item) =>
          Effect.gen(function* () {
            seen.push(item)
            after = item.position
            if (isEnd(item)) progress.ended++
            yield* pause(random, 10)
            return --rest > 0 && progress.ended < ends
          }),
        ),
      )
      yield* pause(random, 50)
    }
    return { request, from, before, accepted, seen }
  })

type Followed = Effect.Success<ReturnType<typeof follow>>

/** Everything that was asked for, in the order of each network, nothing twice and nothing else. */
const checkFollowed = (log: Written, { request, from, before, accepted, seen }: Followed): void => {
  const checkpoints = new Map<string, { primary: number; position: string }>()
  for (const network of networks) {
    const items = log.items.get(network)!.filter((item) => wants(request, item))
    const shown = seen.filter((item) => item._tag !== "CheckpointAdvanced" && item.network === network)
    if (request.network !== undefined && request.network !== network) {
      assert.deepStrictEqual(shown, [])
      continue
    }
    const start = items.length - shown.length
    assert.deepStrictEqual(
      shown.map((item) => ({ ...item, position: "" })),
      items.slice(start).map((item) => {
        const { life, matchId, monitor, cursor } = item
        if (item.kind === "retracted")
          return { _tag: "MatchRetracted", position: "", network, life, matchId, monitor, cursor } as const
        const { event } = JSON.parse(item.payload) as Match
        const match = { id: matchId, monitor, network, event, cursor, time: item.time }
        return { _tag: "MatchEmitted", position: "", network, life, match, emission: null, late: false } as const
      }),
    )
    const skipped = start === 0 ? 0 : items[start - 1]!.position
    assert.isAtMost(skipped, from === null ? accepted.get(network)! : 0)
    if (from === null) assert.isAbove(items[start]!.position, before.get(network)!)
  }
  let position: string | null = null
  const passed = new Map<string, number>()
  for (const item of seen) {
    if (item._tag !== "CheckpointAdvanced") {
      position = item.position
      passed.set(item.network, (item._tag === "MatchEmitted" ? item.match : item).cursor.primary)
      continue
    }
    assert.isTrue(request.kinds.includes("CheckpointAdvanced"))
    if (position !== null) assert.strictEqual(item.position, position)
    const { primary } = item.checkpoint.cursor
    const covered = log.items
      .get(item.network)!
      .findLast((stored) => stored.position <= primary && wants(request, stored))
    const known = passed.get(item.network) ?? (from === "0" ? 0 : undefined)
    if (known !== undefined && covered !== undefined)
      assert.isAtLeast(known, covered.position, "a checkpoint came before an item that it covers")
    const last = checkpoints.get(item.network)
    if (last !== undefined) assert.isAbove(primary, last.primary)
    checkpoints.set(item.network, { primary, position: item.position })
  }
}

/** A random request that shows at least one of the kinds that have an end. */
const anyRequest = (log: Written, random: Generator): Omit<FeedRequest, "after"> => {
  const sure = log.kinds[random.below(log.kinds.length)]
  const kinds = [
    ...(sure === "match" || random.below(4) > 0 ? (["MatchEmitted"] as const) : []),
    ...(sure === "retracted" || random.below(4) > 0 ? (["MatchRetracted"] as const) : []),
    ...(random.below(2) === 0 ? (["CheckpointAdvanced"] as const) : []),
  ]
  return {
    kinds,
    ...(random.below(3) === 0 ? { network: networks[random.below(networks.length)]! } : {}),
    ...(random.below(3) === 0 ? { monitor: monitors[random.below(monitors.length)]! } : {}),
  }
}

/** Lets so many readers follow at once while something is written, and checks what each of them saw. */
export const followWhile = <E, R>(log: Written, seed: number, readers: number, written: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const random = new Generator(seed)
    const fibers = []
    for (let i = 1; i <= readers; i++) {
      const from = random.below(2) === 0 ? null : "0"
      fibers.push(yield* Effect.forkChild(follow(log, new Generator(seed + i), anyRequest(log, random), from)))
    }
    yield* Effect.yieldNow
    yield* written
    for (const followed of yield* Fiber.joinAll(fibers)) checkFollowed(log, followed)
  })
