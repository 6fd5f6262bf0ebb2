import { Effect } from "effect"
import type { PruneInput } from "../storage.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

const FULL_SWEEP_MS = 60_000

/**
 * Where the search for deliveries to remove goes on. Owed and dead rows stay behind it, maybe a great many, so that it
 * does not begin at the oldest row every time.
 */
interface Sweep {
  primary: number
  matchPk: number
  seq: number
  /** Rows behind it that had to stay. */
  kept: number
  readonly startedAt: number
}

type DeliveryTuple = readonly [seq: number, primary: number, matchPk: number, state: string]
type ItemTuple = readonly [pk: number, position: number, monitor: string, primary: number]

const over = new Set(["delivered", "cancelled", "discarded"])

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
  const sweeps = new Map<string, Sweep>()

  const sweepOf = (network: string, now: number): Sweep => {
    const present = sweeps.get(network)
    if (present !== undefined) return present
    const sweep = { primary: Number.MIN_SAFE_INTEGER, matchPk: 0, seq: 0, kept: 0, startedAt: now }
    sweeps.set(network, sweep)
    return sweep
  }

  /** Removes deliveries that are over, and the matches that were kept for them alone. */
  const sweepDeliveries = Effect.fnUntraced(function* (
    { session, network }: Group,
    bound: number,
    limit: number,
    now: number,
  ): Effect.fn.Return<{ readonly looked: number; readonly removed: number; readonly atEnd: boolean }, QueryFailed> {
    const sweep = sweepOf(network.id, now)
    const place = [sweep.primary, sweep.matchPk, sweep.seq]
    const found = yield* session.all<DeliveryTuple>(sql.sweep, [network.id, bound, ...place, limit])
    const gone = found.filter(([, , , state]) => over.has(state))
    if (gone.length > 0) {
      yield* session.run(sql.deleteDeliveries, [gone.map(([seq]) => seq)])
      yield* session.run(sql.deleteMatches, [[...new Set(gone.map(([, , matchPk]) => matchPk))]])
    }
    sweep.kept += found.length - gone.length
    const last = found.at(-1)
    if (last !== undefined) [sweep.seq, sweep.primary, sweep.matchPk] = last
    const atEnd = found.length < limit
    if (atEnd && (sweep.kept <= limit || now - sweep.startedAt >= FULL_SWEEP_MS)) sweeps.delete(network.id)
    return { looked: found.length, removed: gone.length, atEnd }
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
    if (swept.removed > 0) network.sweep(bound)
    const upTo = network.feedPosition - input.feedRetention
    let left = input.limit - swept.looked
    let removed = swept.removed
    for (const kind of feed) {
      if (left <= 0) break
      const trimmed = yield* trimFeed(group, kind, bound, upTo, left)
      left -= trimmed
      removed += trimmed
    }
    if (left > 0) removed += yield* removeAnchors(group, bound, left)
    return removed > 0 || !swept.atEnd
  })
}
