import { Effect } from "effect"
import type { Anchor, RecordId, SourceRecord } from "../../plugin/source.ts"
import { NetworkRow, type PipelineTuple } from "../network-row.ts"
import { countedEvents, type MatchState } from "../events.ts"
import type { DeliveryRow, Pipeline } from "../storage.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import { type RecordTuple, toRecord } from "../tuples/record.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { deadLetterCountSql, openActionsSql, owedCountSql, sql } from "./sql.ts"

type Reading<A> = Effect.Effect<A, QueryFailed>

export const readPipeline = (session: Session, network: string): Reading<Pipeline | null> =>
  Effect.map(session.all<PipelineTuple>(sql.network, [network]), ([tuple]) =>
    tuple === undefined ? null : new NetworkRow(network, tuple).pipeline,
  )

export const readOwed = (
  session: Session,
  network: string,
  sink: string,
  page: { readonly kind?: DeliveryRow["kind"]; readonly afterSeq: number; readonly limit: number },
): Reading<ReadonlyArray<DeliveryRow>> =>
  Effect.map(
    page.kind === undefined
      ? session.all<DeliveryTuple>(sql.owed, [network, sink, page.afterSeq, page.limit])
      : session.all<DeliveryTuple>(sql.owedOfKind, [network, sink, page.afterSeq, page.limit, page.kind]),
    (found) => found.map(toDeliveryRow(network, sink)),
  )

export const readOpenSlots = (session: Session, network: string) =>
  Effect.map(
    session.all<readonly [primary: number, secondary: number, rows: number]>(sql.openSlots, [network]),
    (found) => found.map(([primary, secondary, rows]) => ({ cursor: { primary, secondary }, rows })),
  )

export const readOwedSinks = Effect.fnUntraced(function* (
  session: Session,
  network: string,
): Effect.fn.Return<ReadonlyArray<string>, QueryFailed> {
  const sinks: Array<string> = []
  // One lookup a sink: the index is in the order of sinks.
  while (true) {
    const [next] = yield* session.all<readonly [string]>(sql.nextOwedSink, [network, sinks.at(-1) ?? ""])
    if (next === undefined) return sinks
    sinks.push(next[0])
  }
})

export const readOldestOwed = (session: Session, network: string, sink: string): Reading<number | null> =>
  Effect.map(session.all<readonly [number]>(sql.oldestOwed, [network, sink]), ([row]) => row?.[0] ?? null)

export const countOwed = (
  session: Session,
  network: string,
  sink: string,
  page: { readonly afterSeq: number; readonly limit: number },
): Reading<{ readonly rows: number; readonly lastSeq: number }> =>
  Effect.map(
    session.all<readonly [rows: number, lastSeq: number]>(sql.countOwed, [network, sink, page.afterSeq, page.limit]),
    ([counted]) => ({ rows: Number(counted![0]), lastSeq: Number(counted![1]) }),
  )

export const readDebts = Effect.fnUntraced(function* (
  session: Session,
  by: { readonly network?: string; readonly monitor?: string; readonly sink?: string },
): Effect.fn.Return<{ readonly owed: number; readonly dead: number; readonly actions: number }, QueryFailed> {
  const named = {
    network: by.network !== undefined,
    sink: by.sink !== undefined,
    monitor: by.monitor !== undefined,
  }
  const values = [by.network, by.sink, by.monitor].filter((value) => value !== undefined)
  const count = (text: string, of = values) => Effect.map(session.all<readonly [number]>(text, of), ([row]) => row![0])
  const events = countedEvents(by)
  return {
    owed: yield* count(owedCountSql(named)),
    dead: yield* count(deadLetterCountSql(named)),
    actions: events === null ? 0 : yield* count(openActionsSql(events.by), events.values),
  }
})

export const readAnchors = (
  session: Session,
  network: string,
  atOrBefore: number,
  limit: number,
): Reading<ReadonlyArray<Anchor>> =>
  Effect.map(
    session.all<readonly [primary: number, hash: string]>(sql.anchors, [network, atOrBefore, limit]),
    (found) => found.map(([primary, hash]) => ({ primary, hash })),
  )

export const readRecords = (
  session: Session,
  network: string,
  { after, limit }: { readonly after: RecordId | null; readonly limit: number },
): Reading<ReadonlyArray<SourceRecord>> =>
  Effect.map(session.all<RecordTuple>(sql.records, [network, after?.key ?? "", after?.value ?? "", limit]), (found) =>
    found.map(toRecord),
  )

export const readMatchState = (session: Session, matchId: string): Reading<MatchState | null> =>
  Effect.map(session.all<readonly [ended: number, life: number]>(sql.matchState, [matchId]), ([found]) =>
    found === undefined ? null : { canonical: found[0] === 0, life: found[1] },
  )
