import { Effect } from "effect"
import type { PruneInput } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { makeSweep } from "./sweep.ts"

type ItemTuple = readonly [pk: number, position: number, monitor: string, primary: number]

const feed = [
  { kind: "match", oldest: sql.oldestMatches, trim: sql.trimMatches },
  { kind: "retracted", oldest: sql.oldestRetracted, trim: sql.trimRetracted },
] as const

/**
 * Trims the oldest items of one kind, up to the first that must stay. Answers how many.
 *
 * @param upTo the newest position that may go
 */
const trimFeed = Effect.fnUntraced(function* (
  { session, network }: Group,
  { kind, oldest, trim }: (typeof feed)[number],
  bound: number,
  upTo: number,
  limit: number,
): Effect.fn.Return<number, QueryFailed> {
  const found = yield* session.all<ItemTuple>(oldest, [network.id, upTo, limit])
  const stays = found.findIndex(([, , , primary]) => primary >= bound)
  const items = stays === -1 ? found : found.slice(0, stays)
  if (items.length === 0) return 0
  const pks = items.map(([pk]) => pk)
  yield* session.run(trim, [pks])
  yield* session.run(sql.deleteMatches, [pks])
  const newest = [...new Map(items.map(([, position, monitor]) => [monitor, position]))]
  yield* session.run(sql.putTrims, [
    network.id,
    kind,
    newest.map(([monitor]) => monitor),
    newest.map(([, position]) => position),
  ])
  return items.length
})

const removeAnchors = Effect.fnUntraced(function* (
  { session, network }: Group,
  bound: number,
  limit: number,
): Effect.fn.Return<number, QueryFailed> {
  const [keep] = yield* session.all<readonly [number]>(sql.newestAnchor, [network.id, bound])
  return keep === undefined ? 0 : yield* session.run(sql.deleteAnchors, [network.id, keep[0], limit])
})

/** Prepares the removal of what no one needs any more. */
export const makePrune = () => {
  const deliveries = makeSweep(sql.sweep)
  const hits = makeSweep(sql.sweepHits)
  const events = makeSweep(sql.sweepEvents)

  /** Removes deliveries that are over, and the matches that were kept for them alone. */
  const sweepDeliveries = Effect.fnUntraced(function* (group: Group, bound: number, limit: number, now: number) {
    const swept = yield* deliveries(group, bound, limit, now)
    if (swept.over.length > 0) {
      yield* group.session.run(sql.deleteDeliveries, [swept.over.map(([, , seq]) => seq)])
      yield* group.session.run(sql.deleteMatches, [[...new Set(swept.over.map(([, matchPk]) => matchPk))]])
      group.network.sweep(bound)
    }
    return swept
  })

  /** Removes hits whose window is past, as the newest hit tells the time. */
  const sweepHits = Effect.fnUntraced(function* (group: Group, bound: number, limit: number, now: number) {
    const { session, network } = group
    const [newest] = yield* session.all<readonly [number]>(sql.newestHit, [network.id])
    if (newest === undefined) return { over: [], atEnd: true }
    const swept = yield* hits(group, bound, limit, now, newest[0])
    if (swept.over.length > 0) yield* session.run(sql.deleteHits, [swept.over.map(([, , pk]) => pk)])
    return swept
  })

  /** Removes events whose deliveries have been over for as long as they are kept, and the matches that were kept for them alone. */
  const sweepEvents = Effect.fnUntraced(function* (
    group: Group,
    bound: number,
    before: number,
    limit: number,
    now: number,
  ) {
    const swept = yield* events(group, before, limit, now, bound)
    if (swept.over.length > 0) {
      const seqs = swept.over.map(([, seq]) => seq)
      yield* group.session.run(sql.deleteActionDeliveries, [seqs])
      yield* group.session.run(sql.deleteEvents, [seqs])
      yield* group.session.run(sql.deleteMatches, [[...new Set(swept.over.map(([, , matchPk]) => matchPk))]])
    }
    return swept
  })

  return Effect.fnUntraced(function* (
    group: Group,
    input: PruneInput,
    now: number,
  ): Effect.fn.Return<boolean, QueryFailed> {
    const { network } = group
    if (network.checkpoint === null) return false
    const bound = network.checkpoint.primary - input.journalDepth
    const swept = yield* sweepDeliveries(group, bound, input.limit, now)
    const upTo = network.feedPosition - input.feedRetention
    let left = input.limit - swept.looked
    let removed = swept.over.length
    const remove = (count: number) => {
      left -= count
      removed += count
    }
    for (const kind of feed) {
      if (left > 0) remove(yield* trimFeed(group, kind, bound, upTo, left))
    }
    if (left > 0) remove(yield* removeAnchors(group, bound, left))
    if (left <= 0) return true
    const sweptHits = yield* sweepHits(group, bound, left, now)
    const sweptEvents = yield* sweepEvents(group, bound, now - input.actionRetention, left, now)
    const over = sweptHits.over.length + sweptEvents.over.length
    return removed + over > 0 || !swept.atEnd || !sweptHits.atEnd || !sweptEvents.atEnd
  })
}
