import type { Anchor, RecordId } from "../../plugin/source.ts"
import { countedEvents, type MatchState } from "../events.ts"
import type { DeliveryRow, Pipeline } from "../storage.ts"
import { NetworkRow, type PipelineTuple } from "../network-row.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import { type RecordTuple, toRecord } from "../tuples/record.ts"
import { type Native, rows, type Value } from "./native.ts"
import { deadLetterCountSql, openActionsSql, owedCountSql, sql } from "./sql.ts"

/** Prepares the reads that a pipeline starts and runs from. */
export const makeRowReads = (native: Native) => {
  const pipeline = rows<PipelineTuple>(native, sql.network)
  const owed = rows<DeliveryTuple>(native, sql.owed)
  const owedOfKind = rows<DeliveryTuple>(native, sql.owedOfKind)
  const openSlots = rows<readonly [primary: number, secondary: number, rows: number]>(native, sql.openSlots)
  const nextOwedSink = rows<readonly [string]>(native, sql.nextOwedSink)
  const oldestOwed = rows<readonly [number]>(native, sql.oldestOwed)
  const countOwed = rows<readonly [rows: number, lastSeq: number]>(native, sql.countOwed)
  const anchors = rows<readonly [primary: number, hash: string]>(native, sql.anchors)
  const matchState = rows<readonly [ended: number, life: number]>(native, sql.matchState)
  const records = rows<RecordTuple>(native, sql.records)

  const count = (text: string, values: ReadonlyArray<Value>): number =>
    rows<readonly [number]>(native, text).get(...values)![0]

  return {
    pipeline: (network: string): Pipeline | null => {
      const tuple = pipeline.get(network)
      return tuple === undefined ? null : new NetworkRow(network, tuple).pipeline
    },

    owed: (
      network: string,
      sink: string,
      page: { readonly kind?: DeliveryRow["kind"]; readonly afterSeq: number; readonly limit: number },
    ): ReadonlyArray<DeliveryRow> =>
      (page.kind === undefined
        ? owed.all(network, sink, page.afterSeq, page.limit)
        : owedOfKind.all(network, sink, page.afterSeq, page.kind, page.limit)
      ).map(toDeliveryRow(network, sink)),

    openSlots: (network: string) =>
      openSlots.all(network).map(([primary, secondary, rows]) => ({ cursor: { primary, secondary }, rows })),

    owedSinks: (network: string): ReadonlyArray<string> => {
      const sinks: Array<string> = []
      // One lookup a sink: the index is in the order of sinks.
      for (let next = nextOwedSink.get(network, ""); next !== undefined; next = nextOwedSink.get(network, next[0])) {
        sinks.push(next[0])
      }
      return sinks
    },

    oldestOwed: (network: string, sink: string): number | null => oldestOwed.get(network, sink)?.[0] ?? null,

    countOwed: (network: string, sink: string, page: { readonly afterSeq: number; readonly limit: number }) => {
      const [owedRows, lastSeq] = countOwed.get(network, sink, page.afterSeq, page.limit)!
      return { rows: owedRows, lastSeq }
    },

    debts: (by: { readonly network?: string; readonly monitor?: string; readonly sink?: string }) => {
      const named = {
        network: by.network !== undefined,
        sink: by.sink !== undefined,
        monitor: by.monitor !== undefined,
      }
      const values = [by.network, by.sink, by.monitor].filter((value) => value !== undefined)
      const events = countedEvents(by)
      return {
        owed: count(owedCountSql(named), values),
        dead: count(deadLetterCountSql(named), values),
        actions: events === null ? 0 : count(openActionsSql(events.by), events.values),
      }
    },

    anchors: (network: string, atOrBefore: number, limit: number): ReadonlyArray<Anchor> =>
      anchors.all(network, atOrBefore, limit).map(([primary, hash]) => ({ primary, hash })),

    matchState: (matchId: string): MatchState | null => {
      const found = matchState.get(matchId)
      return found === undefined ? null : { canonical: found[0] === 0, life: found[1] }
    },

    records: (network: string, page: { readonly after: RecordId | null; readonly limit: number }) =>
      records.all(network, page.after?.key ?? "", page.after?.value ?? "", page.limit).map(toRecord),
  }
}
