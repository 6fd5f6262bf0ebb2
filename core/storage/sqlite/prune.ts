import type { PruneInput } from "../storage.ts"
import type { NetworkRow } from "../network-row.ts"
import { type SweptTuple, Sweeps } from "../sweep.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

type ItemTuple = readonly [pk: number, position: number, monitor: string, primary: number]

/** Prepares the removal of what no one needs any more. */
export const makePrune = (native: Native) => {
  const deliveries = new Sweeps()
  const hits = new Sweeps()
  const events = new Sweeps()
  const sweepRows = rows<SweptTuple>(native, sql.sweep)
  const hitRows = rows<SweptTuple>(native, sql.sweepHits)
  const deleteHit = native.prepare(sql.deleteHit)
  const deleteDelivery = native.prepare(sql.deleteDelivery)
  const deleteMatch = native.prepare(sql.deleteMatch)
  const eventRows = rows<SweptTuple>(native, sql.sweepEvents)
  const deleteActionDeliveries = native.prepare(sql.deleteActionDeliveries)
  const deleteEvent = native.prepare(sql.deleteEvent)
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

  /** Removes deliveries that are over, and the matches that were kept for them alone. */
  const sweepDeliveries = (network: string, bound: number, limit: number, now: number) => {
    const found = sweepRows.all(network, bound, ...deliveries.place(network), limit)
    const swept = deliveries.take(network, found, limit, now)
    for (const [, , seq] of swept.over) deleteDelivery.run(seq)
    for (const pk of new Set(swept.over.map(([, matchPk]) => matchPk))) deleteMatch.run(pk)
    return swept
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

  /** Removes hits whose window is past, as the newest hit tells the time. */
  const sweepHits = (network: string, bound: number, limit: number, now: number) => {
    const newest = newestHit.get(network)
    if (newest === undefined) return { over: [], atEnd: true }
    const found = hitRows.all(newest[0], network, bound, ...hits.place(network), limit)
    const swept = hits.take(network, found, limit, now)
    for (const [, , pk] of swept.over) deleteHit.run(pk)
    return swept
  }

  /** Removes events whose deliveries have been over for as long as they are kept, and the matches that were kept for them alone. */
  const sweepEvents = (network: string, bound: number, before: number, limit: number, now: number) => {
    const found = eventRows.all(bound, before, before, network, before, ...events.place(network), limit)
    const swept = events.take(network, found, limit, now)
    for (const [, seq] of swept.over) {
      deleteActionDeliveries.run(seq)
      deleteEvent.run(seq)
    }
    for (const pk of new Set(swept.over.map(([, , matchPk]) => matchPk))) deleteMatch.run(pk)
    return swept
  }

  return (network: NetworkRow, input: PruneInput, now: number): boolean => {
    if (network.checkpoint === null) return false
    const bound = network.checkpoint.primary - input.journalDepth
    const swept = sweepDeliveries(network.id, bound, input.limit, now)
    if (swept.over.length > 0) network.sweep(bound)
    let left = input.limit - swept.looked
    let removed = swept.over.length
    const remove = (count: number) => {
      left -= count
      removed += count
    }
    for (const kind of feed) {
      if (left > 0) remove(trimFeed(kind, network.id, bound, network.feedPosition - input.feedRetention, left))
    }
    if (left > 0) remove(removeAnchors(network.id, bound, left))
    if (left <= 0) return true
    const sweptHits = sweepHits(network.id, bound, left, now)
    const sweptEvents = sweepEvents(network.id, bound, now - input.actionRetention, left, now)
    const over = sweptHits.over.length + sweptEvents.over.length
    return removed + over > 0 || !swept.atEnd || !sweptHits.atEnd || !sweptEvents.atEnd
  }
}
