import type { Emission, OpenedMatch } from "./emission.ts"
import { ACTIONS, type EventTerms, type NewEvent } from "./events.ts"
import type { Cursor } from "../model/cursor.ts"
import type { DeliveryRow } from "./storage.ts"

/** A match as it is stored. */
export interface MintedMatch extends OpenedMatch {
  readonly pk: number
  /** Its place in the feed; null when the feed does not show it. */
  readonly position: number | null
  readonly emission: string | null
  readonly kept: Cursor | null
}

/** A delivery as it is stored. */
export interface NewDelivery {
  readonly seq: number
  readonly sink: string
  readonly pk: number
  readonly cursor: Cursor
  /** Only rows of the sink `actions` are stored as delivered. */
  readonly state: "pending" | "offered" | "delivered" | "dead"
  readonly slot: boolean
  readonly digest: string | null
  /** Of a dead one: its place in the order of dying, the match's monitor, and why. */
  readonly dead: { readonly died: number; readonly monitor: string; readonly reason: string } | null
}

/** How many numbers of each kind the rows take. */
export interface RowCounts {
  readonly match: number
  readonly delivery: number
  readonly died: number
  /** Feed positions. */
  readonly shown: number
}

export const countRows = (emissions: ReadonlyArray<Emission>): RowCounts => {
  let [match, delivery, died, shown] = [0, 0, 0, 0]
  for (const { members, sinks } of emissions) {
    match += members.length
    delivery += members.length * sinks.length
    if (members[0]!.match.failure === undefined) shown += members.length
    else died += sinks.length
  }
  return { match, delivery, died, shown }
}

/** Gives the next number of each kind. */
export type NextNumber = Readonly<Record<keyof RowCounts, () => number>>

/** The rows of a mint, in the order of their numbers; those that are owed also as their workers see them. */
export interface MintedRows {
  readonly matches: ReadonlyArray<MintedMatch>
  readonly deliveries: ReadonlyArray<NewDelivery>
  readonly owed: ReadonlyArray<DeliveryRow>
  readonly events: ReadonlyArray<NewEvent>
}

/** How rows are minted. */
export interface RowTerms extends Partial<EventTerms> {
  /** How many rows of each sink are offered at once. */
  readonly offer: ReadonlyMap<string, number>
  /** The sinks whose rows hold no slot. */
  readonly durable: ReadonlySet<string>
}

/**
 * The rows that emissions are stored as. The sinks of an emission follow one another, and each has all of its members. What
 * goes to the sink `actions` is delivered with its event.
 */
export const rowsOf = (
  network: string,
  emissions: ReadonlyArray<Emission>,
  terms: RowTerms,
  next: NextNumber,
): MintedRows => {
  const matches: Array<MintedMatch> = []
  const deliveries: Array<NewDelivery> = []
  const owed: Array<DeliveryRow> = []
  const events: Array<NewEvent> = []
  const offers = new Map(terms.offer)
  for (const { members, sinks, emission, kept, slot } of emissions) {
    const first = matches.length
    for (const { match, life } of members) {
      const position = match.failure === undefined ? next.shown() : null
      matches.push({ match, life, pk: next.match(), position, emission, kept })
    }
    for (const sink of sinks) {
      const acts = sink === ACTIONS && terms.actions !== undefined
      const holds = slot && !terms.durable.has(sink)
      for (let i = 0; i < members.length; i++) {
        const { match, life } = members[i]!
        const { pk } = matches[first + i]!
        const seq = next.delivery()
        const cursor = kept ?? match.cursor
        if (match.failure !== undefined) {
          const dead = { died: next.died(), monitor: match.monitor, reason: match.failure }
          deliveries.push({ seq, sink, pk, cursor, state: "dead", slot: false, digest: emission, dead })
          continue
        }
        if (acts) {
          deliveries.push({ seq, sink, pk, cursor, state: "delivered", slot: false, digest: emission, dead: null })
          events.push({ monitor: match.monitor, pk, matchId: match.id, life, primary: cursor.primary, emission })
          continue
        }
        const left = offers.get(sink) ?? 0
        if (left > 0) offers.set(sink, left - 1)
        const state = left > 0 ? "offered" : "pending"
        deliveries.push({ seq, sink, pk, cursor, state, slot: holds, digest: emission, dead: null })
        owed.push({
          seq,
          network,
          sink,
          monitor: match.monitor,
          matchId: match.id,
          life,
          kind: "match",
          cursor,
          state,
          digest: emission,
          attempts: 0,
          slot: holds,
          payload: match.payload,
          ...(match.event === undefined ? {} : { event: match.event }),
          ...(match.time === null ? {} : { time: match.time }),
        })
      }
    }
  }
  return { matches, deliveries, owed, events }
}
