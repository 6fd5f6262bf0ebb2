import type { Tracer } from "effect"
import {
  deliveryId,
  digestBody,
  digestId,
  type Match,
  matchBody,
  retractedBody,
  type SinkEvent,
} from "../model/sink-event.ts"
import type { DeliveryRow, Digest } from "../storage/storage.ts"
import type { Draining } from "./draining.ts"
import type { WorkItem } from "./work-item.ts"

/** What is delivered at once: a row, or the rows of a digest in `seq` order. */
export interface Unit {
  readonly items: ReadonlyArray<WorkItem>
  /** Failed attempts that no row tells yet: of a larger digest that was split into this one, or at a receiver that is gone. */
  attempts: number
  /**
   * What is to be written before it is sent: nothing, that its rows are offered, or that they are offered as a digest of
   * their own.
   */
  write: "nothing" | "offered" | "digest"
}

const isOffered = ({ row }: WorkItem): boolean => row.state === "offered"

const unitOf = (items: ReadonlyArray<WorkItem>): Unit => ({
  items,
  attempts: 0,
  write: items.every(isOffered) ? "nothing" : "offered",
})

/**
 * Parts items into units: those with the same digest belong together, whatever stands between them, at the place of the
 * first.
 */
export const toUnits = (items: ReadonlyArray<WorkItem>): Array<Unit> => {
  const units: Array<Array<WorkItem>> = []
  const digests = new Map<string, Array<WorkItem>>()
  for (const item of items) {
    const { digest } = item.row
    const members = digest === null ? undefined : digests.get(digest)
    if (members === undefined) {
      const unit = [item]
      units.push(unit)
      if (digest !== null) digests.set(digest, unit)
    } else members.push(item)
  }
  return units.map(unitOf)
}

/** The unit of a batch of matches that was gathered: a digest, or a plain match if it is one alone. */
export const unitOfBatch = (items: ReadonlyArray<WorkItem>): Unit => ({
  items,
  attempts: 0,
  write: items.length === 1 ? "offered" : "digest",
})

/** The halves of a digest that is too large, after so many attempts at the whole. */
export const halvesOf = ({ items, attempts }: Unit, failed: number): ReadonlyArray<Unit> => {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)].map((half) => ({
    items: half,
    attempts: attempts + failed,
    write: "digest",
  }))
}

export const isRetraction = ({ items }: Unit): boolean => items[0]!.row.kind === "retracted"

/** The spans in which its rows were written, each once. */
export const spansOf = ({ items }: Unit): ReadonlyArray<Tracer.AnySpan> => [
  ...new Set(items.flatMap(({ span }) => span ?? [])),
]

/** What of a unit a drain does not leave; null when it leaves all. */
export const withoutLeft = (unit: Unit, draining: Draining): Unit | null => {
  if (!draining.isBegun) return unit
  const items = unit.items.filter(({ row }) => !draining.leaves(row.cursor))
  if (items.length === unit.items.length) return unit
  return items.length === 0 ? null : { ...unit, items }
}

/** The most rows that are offered in one transaction. */
const OFFER = 256

/** What is to be written before units are sent, in pieces of a few ms each. */
export const offersOf = (
  units: ReadonlyArray<Unit>,
): ReadonlyArray<{ readonly offered: ReadonlyArray<number>; readonly digests: ReadonlyArray<Digest> }> => {
  const offered: Array<number> = []
  const digests: Array<Digest> = []
  for (const { items, write } of units) {
    if (write === "offered") for (const item of items) if (!isOffered(item)) offered.push(item.row.seq)
    if (write === "digest") digests.push({ digest: idOf(items), seqs: items.map(({ row }) => row.seq) })
  }
  return [
    ...piecesOf(offered).map((piece) => ({ offered: piece, digests: [] })),
    ...digests.flatMap(({ digest, seqs }) =>
      piecesOf(seqs).map((piece) => ({ offered: [], digests: [{ digest, seqs: piece }] })),
    ),
  ]
}

const piecesOf = (seqs: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<number>> => {
  if (seqs.length <= OFFER) return seqs.length === 0 ? [] : [seqs]
  return Array.from({ length: Math.ceil(seqs.length / OFFER) }, (_, i) => seqs.slice(i * OFFER, (i + 1) * OFFER))
}

const idOf = (items: ReadonlyArray<WorkItem>): string => digestId(items.map(({ row }) => row))

const matchOf = ({ matchId, monitor, network, payload, event }: DeliveryRow): Match => ({
  id: matchId,
  monitor,
  network,
  event: event ?? (JSON.parse(payload) as Match).event,
})

/** A unit as its sink gets it. */
export interface Sent {
  readonly event: SinkEvent
  readonly delivery: { readonly id: string; readonly body: string; readonly nonce: null }
}

export const toSent = ({ items }: Unit): Sent => {
  const { row } = items[0]!
  if (items.length > 1) {
    return {
      event: { type: "digest", matches: items.map((item) => matchOf(item.row)) },
      delivery: { id: idOf(items), body: digestBody(items.map((item) => item.row.payload)), nonce: null },
    }
  }
  const id = deliveryId(row.matchId, row.life, row.kind)
  if (row.kind === "retracted") {
    return {
      event: { type: "retracted", match_id: row.matchId },
      delivery: { id, body: retractedBody(row.matchId), nonce: null },
    }
  }
  return { event: { type: "match", ...matchOf(row) }, delivery: { id, body: matchBody(row.payload), nonce: null } }
}

/** What a unit is, in words. */
export const nameOf = ({ items }: Unit): string => {
  if (items.length > 1) return `delivery of a digest of ${items.length} matches`
  return items[0]!.row.kind === "match" ? "delivery" : "retraction"
}
