import type { DeliveryName } from "../keys.ts"
import { places, type Session } from "./session.ts"

/** A delivery that is over. */
export interface Over extends DeliveryName {
  readonly matchId: string | null
}

type Row = { readonly [column: string]: unknown }

/**
 * Deliveries in the order of their keys, behind one, that came before a time: those that have succeeded before it, and the
 * last key. Others may be run again: their calls must not be sent again.
 */
export const readSucceeded = async (
  session: Session,
  after: number,
  before: number,
  limit: number,
): Promise<{ readonly over: ReadonlyArray<Over>; readonly last: number; readonly more: boolean }> => {
  const rows = await session.all<Row>(
    `select d.pk, d.action, d.state, d.created_at, d.settled_at, e.id as event, e.match_id
      from blockwatcher_action_deliveries d join blockwatcher_events e on e.seq = d.event_seq
      where d.pk > ? order by d.pk limit ?`,
    [after, limit],
  )
  const young = rows.findIndex((row) => Number(row["created_at"]) >= before)
  const old = young < 0 ? rows : rows.slice(0, young)
  const over = old.filter((row) => row["state"] === "succeeded" && Number(row["settled_at"]) < before)
  return {
    over: over.map((row) => ({
      pk: Number(row["pk"]),
      action: row["action"] as string,
      event: row["event"] as string,
      matchId: row["match_id"] as string | null,
    })),
    last: old.length === 0 ? after : Number(old.at(-1)!["pk"]),
    more: rows.length === limit && young < 0,
  }
}

/** Forgets what was recorded of deliveries, by their keys, and the numbers of runs about subjects. */
export const forget = async (
  session: Session,
  keys: ReadonlyArray<string>,
  subjects: ReadonlyArray<string>,
): Promise<void> => {
  for (const table of ["blockwatcher_handled_deliveries", "blockwatcher_provider_calls"]) {
    await session.run(`delete from ${table} where delivery in ${places(1, keys.length)}`, keys)
  }
  await session.run(`delete from blockwatcher_runs where subject in ${places(1, subjects.length)}`, subjects)
}

/** Events that are of no network, of which all deliveries were over before a time, with these deliveries. */
export const readOldEvents = async (
  session: Session,
  before: number,
  limit: number,
): Promise<{ readonly seqs: ReadonlyArray<number>; readonly over: ReadonlyArray<Over> }> => {
  const rows = await session.all<Row>(
    `select e.seq, e.id from blockwatcher_events e where e.network is null and e.created_at < ? and not exists (
        select 1 from blockwatcher_action_deliveries d
        where d.event_seq = e.seq and (d.settled_at is null or d.settled_at >= ?))
      order by e.created_at, e.seq limit ?`,
    [before, before, limit],
  )
  if (rows.length === 0) return { seqs: [], over: [] }
  const ids = new Map(rows.map((row) => [Number(row["seq"]), row["id"] as string]))
  const deliveries = await session.all<Row>(
    `select pk, event_seq, action from blockwatcher_action_deliveries where event_seq in ${places(1, ids.size)}`,
    [...ids.keys()],
  )
  const over = deliveries.map((row) => ({
    pk: Number(row["pk"]),
    action: row["action"] as string,
    event: ids.get(Number(row["event_seq"]))!,
    matchId: null,
  }))
  return { seqs: [...ids.keys()], over }
}

/** Removes events with their deliveries. */
export const removeEvents = async (session: Session, seqs: ReadonlyArray<number>): Promise<void> => {
  await session.run(`delete from blockwatcher_action_deliveries where event_seq in ${places(1, seqs.length)}`, seqs)
  await session.run(`delete from blockwatcher_events where seq in ${places(1, seqs.length)}`, seqs)
}
