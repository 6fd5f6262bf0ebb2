import { places, type Session } from "./session.ts"

/** A delivery that is parked because its payload was not read. */
export interface UnreadableRow {
  readonly pk: number
  readonly type: string
  readonly encoding: number | null
  /** The version of the type that did not read it; null when it was not for the version. */
  readonly reader: number | null
}

/** Those of an action, in the order of their keys, behind one. */
export const readUnreadable = async (
  session: Session,
  action: string,
  after: number,
  limit: number,
): Promise<ReadonlyArray<UnreadableRow>> => {
  const rows = await session.all<{ readonly [column: string]: unknown }>(
    `select d.pk, d.reader, e.type, e.encoding from blockwatcher_action_deliveries d
      join blockwatcher_events e on e.seq = d.event_seq
      where d.action = ? and d.state = 'parked' and d.pk > ? and d.code = 'payload_unreadable' order by d.pk limit ?`,
    [action, after, limit],
  )
  return rows.map((row) => ({
    pk: Number(row["pk"]),
    type: row["type"] as string,
    encoding: row["encoding"] === null ? null : Number(row["encoding"]),
    reader: row["reader"] === null ? null : Number(row["reader"]),
  }))
}

/** Lets them be run. */
export const tryAgain = async (session: Session, pks: ReadonlyArray<number>, now: number): Promise<void> => {
  await session.run(
    `update blockwatcher_action_deliveries set state = 'waiting', due = ?, code = null, reason = null, reader = null
      where state = 'parked' and code = 'payload_unreadable' and pk in ${places(1, pks.length)}`,
    [now, ...pks],
  )
}
