import type { DeadLetterFilter, DeadLetterRow, DeliveryRow, NoReplay } from "../storage.ts"
import type { NetworkRow } from "../network-row.ts"
import { type DeadLetterTuple, filterParts, filterValues, noReplay, toDeadLetterRow } from "../tuples/dead-letter.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import { type Native, rows } from "./native.ts"
import { deadLetterCountSql, deadLettersSql, discardAllSql, sql } from "./sql.ts"

/** The reads of dead letters. */
export const makeDeadLetterReads = (native: Native) => {
  const one = rows<DeadLetterTuple>(native, sql.deadLetter)
  return {
    list: (
      filter: DeadLetterFilter,
      page: { readonly after: number; readonly limit: number },
    ): ReadonlyArray<DeadLetterRow> =>
      rows<DeadLetterTuple>(native, deadLettersSql(filterParts(filter)))
        .all(...filterValues(filter), page.after, page.limit)
        .map(toDeadLetterRow),

    count: (filter: DeadLetterFilter): number =>
      rows<readonly [number]>(native, deadLetterCountSql({ network: true, ...filterParts(filter) })).get(
        ...filterValues(filter),
      )![0],

    one: (network: string, seq: number): DeadLetterRow | null => {
      const tuple = one.get(seq, network)
      return tuple === undefined ? null : toDeadLetterRow(tuple)
    },
  }
}

/** Prepares what takes dead letters away. */
export const makeDeadLetterWrites = (native: Native) => {
  const letter = rows<DeadLetterTuple>(native, sql.deadLetter)
  const delivery = rows<readonly [sink: string, ...row: DeliveryTuple]>(native, sql.delivery)
  const replay = native.prepare(sql.replay)
  const discard = native.prepare(sql.discard)
  const unheard = rows<DeliveryTuple>(native, sql.unheardRetractions)
  const offer = native.prepare(sql.offerRetraction)

  return {
    replay: (network: NetworkRow, seq: number): DeliveryRow | NoReplay | "NOT_FOUND" => {
      const tuple = letter.get(seq, network.id)
      if (tuple === undefined) return "NOT_FOUND"
      const refused = noReplay(toDeadLetterRow(tuple))
      if (refused !== null) return refused
      replay.run(seq)
      const [sink, ...row] = delivery.get(seq)!
      return toDeliveryRow(network.id, sink)(row)
    },

    discard: (network: NetworkRow, seq: number, now: number): boolean => discard.run(now, seq, network.id).changes > 0,

    discardAll: (
      network: NetworkRow,
      filter: Omit<DeadLetterFilter, "network">,
      limit: number,
      now: number,
    ): number => {
      const whole = { ...filter, network: network.id }
      return native.prepare(discardAllSql(filterParts(whole))).run(now, ...filterValues(whole), 0, limit).changes
    },

    offerRetractions: (network: NetworkRow, sink: string, limit: number): ReadonlyArray<DeliveryRow> =>
      unheard.all(network.id, sink, limit).map((row) => {
        offer.run(row[0])
        return toDeliveryRow(network.id, sink)(row)
      }),
  }
}
