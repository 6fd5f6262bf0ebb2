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

/** Rows of one statement: a database takes some tens of thousands of values in each. */
const ROWS = 1_000

const inPieces = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / ROWS) }, (_, i) => items.slice(i * ROWS, (i + 1) * ROWS))

/** Writes events, each with a delivery for every action that gets it. */
export const writeEvents = async (session: Session, events: ReadonlyArray<NewEvent>, now: number): Promise<void> => {
  for (const piece of inPieces(events)) await writePiece(session, piece, now)
}

const writePiece = async (session: Session, events: ReadonlyArray<NewEvent>, now: number): Promise<void> => {
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
  for (const piece of inPieces(deliveries)) {
    await session.run(
      `insert into blockwatcher_action_deliveries (event_seq, action, due, created_at, state, attempts)
        values ${piece.map(() => "(?, ?, ?, ?, 'waiting', 0)").join(", ")}`,
      piece.flat(),
    )
  }
}
