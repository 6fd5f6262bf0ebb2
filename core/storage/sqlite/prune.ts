import type { PruneInput } from "../storage.ts"
import type { NetworkRow } from "../network-row.ts"
import { type Native, rows } from "./native.ts"
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
  startedAt: number
}

type DeliveryTuple = readonly [seq: number, primary: number, matchPk: number, over: number]
type ItemTuple = readonly [pk: number, position: number, monitor: string, primary: number]

/** Prepares the removal of what no one needs any more. */
export const makePrune = (native: Native) => {
  const sweepRows = rows<DeliveryTuple>(native, sql.sweep)
  const deleteDelivery = native.prepare(sql.deleteDelivery)
  const deleteMatch = native.prepare(sql.deleteMatch)
  const feed = [
    { kind: "match", oldest: rows<ItemTuple>(native, sql.oldestMatches), trim: native.prepare(sql.trimMatch) },
    {
      kind: "retracted",
      oldest: rows<ItemTuple>(native, sql.oldestRetracted),
      trim: native.prepare(sql.trimRetracted),
    },
  ] as const
  const putTrim = native.prepare(sql.putTrim)
  const newestAnchor = rows<readonly [number]>(native, sql.newestAnchor)
  const deleteAnchors = native.prepare(sql.deleteAnchors)
  const newestHit = rows<readonly [number]>(native, sql.newestHit)
  const pruneHits = native.prepare(sql.pruneHits)
  const sweeps = new Map<string, Sweep>()

  const sweepOf = (network: string, now: number): Sweep => {
    const present = sweeps.get(network)
    if (present !== undefined) return present
    const sweep = { primary: Number.MIN_SAFE_INTEGER, matchPk: 0, seq: 0, kept: 0, startedAt: now }
    sweeps.set(network, sweep)
    return sweep
  }

  /** Removes deliveries that are over, and the matches that were kept for them alone. */
  const sweepDeliveries = (network: string, bound: number, limit: number, now: number) => {
    const sweep = sweepOf(network, now)
    const found = sweepRows.all(network, bound, sweep.primary, sweep.matchPk, sweep.seq, limit)
    const matches = new Set<number>()
    let removed = 0
    for (const [seq, primary, matchPk, over] of found) {
      if (over === 1) {
        deleteDelivery.run(seq)
        matches.add(matchPk)
        removed++
      } else {
        sweep.kept++
      }
      sweep.primary = primary
      sweep.matchPk = matchPk
      sweep.seq = seq
    }
    for (const pk of matches) deleteMatch.run(pk)
    const atEnd = found.length < limit
    if (atEnd && (sweep.kept <= limit || now - sweep.startedAt >= FULL_SWEEP_MS)) sweeps.delete(network)
    return { looked: found.length, removed, atEnd }
  }

  /** Trims the oldest items of one kind, up to the first that must stay. Answers how many. */
  const trimFeed = (
    { kind, oldest, trim }: (typeof feed)[number],
    network: string,
    bound: number,
    upTo: number,
    limit: number,
  ): number => {
    const newest = new Map<string, number>()
    let trimmed = 0
    for (const [pk, position, monitor, primary] of oldest.all(network, upTo, limit)) {
      if (primary >= bound) break
      trim.run(pk)
      deleteMatch.run(pk)
      newest.set(monitor, position)
      trimmed++
    }
    for (const [monitor, position] of newest) putTrim.run(network, monitor, kind, position)
    return trimmed
  }

  const removeAnchors = (network: string, bound: number, limit: number): number => {
    const keep = newestAnchor.get(network, bound)
    return keep === undefined ? 0 : deleteAnchors.run(network, network, keep[0], limit).changes
  }

  const removeHits = (network: string, bound: number, limit: number): number => {
    const newest = newestHit.get(network)
    return newest === undefined ? 0 : pruneHits.run(network, bound, newest[0], limit).changes
  }

  return (network: NetworkRow, input: PruneInput, now: number): boolean => {
    if (network.checkpoint === null) return false
    const bound = network.checkpoint.primary - input.journalDepth
    const swept = sweepDeliveries(network.id, bound, input.limit, now)
    if (swept.removed > 0) network.sweep(bound)
    let left = input.limit - swept.looked
    let removed = swept.removed
    const remove = (count: number) => {
      left -= count
      removed += count
    }
    for (const kind of feed) {
      if (left > 0) remove(trimFeed(kind, network.id, bound, network.feedPosition - input.feedRetention, left))
    }
    if (left > 0) remove(removeAnchors(network.id, bound, left))
    if (left > 0) remove(removeHits(network.id, bound, left))
    return removed > 0 || !swept.atEnd
  }
}
