import { ENCODING } from "../../storage/events.ts"
import { places, type Session } from "./session.ts"

/** An event that is to be written. */
export interface NewEvent {
  readonly id: string
  readonly type: string
  readonly version: number
  /** Its payload's JSON. */
  readonly payload: string
  readonly tenant: string | null
  readonly traceparent: string | null
  /** How many events led to it. */
  readonly depth: number
  /** The actions that get a delivery of it. */
  readonly actions: ReadonlyArray<string>
}

/** Writes events, each with a delivery for every action that gets it. */
export const writeEvents = async (session: Session, events: ReadonlyArray<NewEvent>, now: number): Promise<void> => {
  if (events.length === 0) return
  const rows = await session.all<{ readonly seq: number | string; readonly id: string }>(
    `insert into blockwatcher_events (id, type, version, encoding, payload, tenant, traceparent, depth, created_at)
      values ${places(events.length, 9)} returning seq, id`,
    events.flatMap(({ id, type, version, payload, tenant, traceparent, depth }) => [
      id,
      type,
      version,
      ENCODING,
      payload,
      tenant,
      traceparent,
      depth,
      now,
    ]),
  )
  const seqs = new Map(rows.map(({ seq, id }) => [id, Number(seq)]))
  const deliveries = events.flatMap(({ id, actions }) => actions.map((action) => [seqs.get(id)!, action, now, now]))
  if (deliveries.length === 0) return
  await session.run(
    `insert into blockwatcher_action_deliveries (event_seq, action, due, created_at, state, attempts)
      values ${deliveries.map(() => "(?, ?, ?, ?, 'waiting', 0)").join(", ")}`,
    deliveries.flat(),
  )
}
