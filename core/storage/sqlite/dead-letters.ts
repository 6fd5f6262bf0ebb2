import type { DeadLetterCount, DeadLetterRow, LetterFilter } from "../dead-letter.ts"
import type { EventTerms } from "../events.ts"
import type { DeliveryRow, Outcome } from "../storage.ts"
import type { NetworkRow } from "../network-row.ts"
import { type DeadLetterTuple, filterParts, filterValues, toDeadLetterRow } from "../tuples/dead-letter.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { makeOwedEvents } from "./owed-events.ts"
import { deadLetterCountSql, deadLettersSql, lettersBetweenSql, sql } from "./sql.ts"

/** The reads of dead letters. */
export const makeDeadLetterReads = (native: Native) => {
  const one = rows<DeadLetterTuple>(native, sql.deadLetter)
  const retractionOwed = rows<readonly [number]>(native, sql.retractionOwed)
  const counts = rows<readonly [sink: string, monitor: string, letters: number]>(native, sql.letterCounts)
  return {
    list: (
      filter: LetterFilter,
      page: { readonly after: number; readonly limit: number },
    ): ReadonlyArray<DeadLetterRow> => {
      const parts = filterParts(filter)
      if (parts.kinds.length === 0) return []
      const values = parts.kinds.flatMap(() => [...filterValues(filter), page.after])
      return rows<DeadLetterTuple>(native, deadLettersSql(parts))
        .all(...values, page.limit)
        .map(toDeadLetterRow)
    },

    between: (
      filter: LetterFilter,
      page: { readonly after: number; readonly upTo: number; readonly limit: number },
    ): { readonly letters: number; readonly last: number } => {
      const parts = filterParts(filter)
      if (parts.kinds.length === 0) return { letters: 0, last: 0 }
      const values = parts.kinds.flatMap(() => [...filterValues(filter), page.after, page.upTo])
      const [letters, last] = rows<readonly [number, number]>(native, lettersBetweenSql(parts)).get(
        ...values,
        page.limit,
      )!
      return { letters, last }
    },

    count: (filter: LetterFilter): number => {
      const { kinds, ...by } = filterParts(filter)
      const text = deadLetterCountSql({ network: true, ...by }, kinds)
      return rows<readonly [number]>(native, text).get(...filterValues(filter))![0]
    },

    counts: (network: string): ReadonlyArray<DeadLetterCount> =>
      counts.all(network).map(([sink, monitor, letters]) => ({ sink, monitor, letters })),

    isRetractionOwed: ({
      network,
      sink,
      matchId,
      cursor,
    }: Pick<DeadLetterRow, "network" | "sink" | "matchId" | "cursor">): boolean =>
      retractionOwed.get(network, cursor.primary, cursor.secondary, matchId, sink) !== undefined,

    one: (network: string, seq: number): DeadLetterRow | null => {
      const tuple = one.get(seq, network)
      return tuple === undefined ? null : toDeadLetterRow(tuple)
    },
  }
}

/** Prepares what takes dead letters away. */
export const makeDeadLetterWrites = (native: Native) => {
  const delivered = native.prepare(sql.replayDelivered)
  const failed = native.prepare(sql.replayFailed)
  const { emitLetter } = makeOwedEvents(native)
  const discard = native.prepare(sql.discard)
  const unheard = rows<DeliveryTuple>(native, sql.unheardRetractions)
  const offer = native.prepare(sql.offerRetraction)

  return {
    replayed: (
      group: Group,
      network: NetworkRow,
      { seq, state, attempts, reason }: Outcome,
      terms: EventTerms | undefined,
      now: number,
    ): boolean => {
      if (terms !== undefined && !emitLetter(group, network, seq, terms, now)) return false
      const written =
        state === "delivered"
          ? delivered.run(attempts, now, seq, network.id)
          : failed.run(attempts, reason, seq, network.id)
      return written.changes > 0
    },

    discard: (network: NetworkRow, seqs: ReadonlyArray<number>, now: number): number =>
      seqs.reduce((discarded, seq) => discarded + discard.run(now, seq, network.id).changes, 0),

    offerRetractions: (network: NetworkRow, sink: string, limit: number): ReadonlyArray<DeliveryRow> =>
      unheard.all(network.id, sink, limit).map((row) => {
        offer.run(row[0])
        return toDeliveryRow(network.id, sink)(row)
      }),
  }
}
