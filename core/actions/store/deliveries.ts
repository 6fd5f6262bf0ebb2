import { places, type Session } from "./session.ts"

/** Why a delivery is not tried any more by itself. */
export type Code =
  | "attempts_exhausted"
  | "call_diverged"
  | "event_chain_limit"
  | "outcome_unknown"
  | "payload_unreadable"
  | "unknown_action"

/** A delivery that this process holds. */
export interface Held {
  readonly pk: number
  readonly holder: string
}

const HELD = "where pk = ? and state = 'running' and holder = ?"

const SUCCEEDED = "state = 'succeeded', code = null, reason = null, settled_at = ?"

/** Another runner has the delivery, or an operator decided about it. */
export class Lost extends Error {
  override readonly name = "Lost"

  constructor() {
    super("the delivery is not held any more")
  }
}

const change = async (
  session: Session,
  { pk, holder }: Held,
  sets: string,
  values: ReadonlyArray<string | number | null>,
) => {
  const changed = await session.run(
    `update blockwatcher_action_deliveries set holder = null, lease_until = null, ${sets} ${HELD}`,
    [...values, pk, holder],
  )
  if (changed === 0) throw new Lost()
}

/** Each throws `Lost` when the delivery is not held. */
export const succeed = (session: Session, held: Held, now: number): Promise<void> =>
  change(session, held, SUCCEEDED, [now])

/** Keeps deliveries that a holder has from changing until the transaction ends; answers which it still has. */
export const holdDeliveries = async (
  session: Session,
  holder: string,
  pks: ReadonlyArray<number>,
): Promise<ReadonlySet<number>> => {
  const lock = session.database === "postgres" ? "order by pk for update" : ""
  const rows = await session.all<{ readonly pk: number | string }>(
    `select pk from blockwatcher_action_deliveries
      where pk in ${places(1, pks.length)} and state = 'running' and holder = ? ${lock}`,
    [...pks, holder],
  )
  return new Set(rows.map(({ pk }) => Number(pk)))
}

/** Ends deliveries whose holder keeps them. */
export const succeedAll = async (
  session: Session,
  holder: string,
  pks: ReadonlyArray<number>,
  now: number,
): Promise<void> => {
  await session.run(
    `update blockwatcher_action_deliveries set holder = null, lease_until = null, ${SUCCEEDED}
      where pk in ${places(1, pks.length)} and state = 'running' and holder = ?`,
    [now, ...pks, holder],
  )
}

/** It failed for good. */
export const fail = (
  session: Session,
  held: Held,
  end: { readonly attempts: number; readonly code: Code; readonly reason: string },
  now: number,
): Promise<void> =>
  change(session, held, "state = 'failed', attempts = ?, code = ?, reason = ?, settled_at = ?", [
    end.attempts,
    end.code,
    end.reason,
    now,
  ])

/** It rests until someone or something decides. */
export const park = (
  session: Session,
  held: Held,
  end: { readonly code: Code; readonly reason: string; readonly reader: number | null },
): Promise<void> =>
  change(session, held, "state = 'parked', code = ?, reason = ?, reader = ?", [end.code, end.reason, end.reader])

/** It is tried again. */
export const retryLater = (
  session: Session,
  held: Held,
  next: { readonly attempts: number; readonly due: number; readonly reason: string },
): Promise<void> =>
  change(session, held, "state = 'waiting', attempts = ?, due = ?, reason = ?", [next.attempts, next.due, next.reason])

/** As if it had not been claimed. */
export const giveBack = (session: Session, held: Held, now: number): Promise<void> =>
  change(session, held, "state = 'waiting', due = ?", [now])

/** Its lease lasts until then. */
export const extend = async (session: Session, { pk, holder }: Held, until: number): Promise<void> => {
  const changed = await session.run(`update blockwatcher_action_deliveries set lease_until = ? ${HELD}`, [
    until,
    pk,
    holder,
  ])
  if (changed === 0) throw new Lost()
}

/** Fails with `Lost` unless the delivery is held, under a lease that has not run out. */
export const checkHeld = async (session: Session, { pk, holder }: Held, now: number): Promise<void> => {
  const rows = await session.all(`select pk from blockwatcher_action_deliveries ${HELD} and lease_until > ?`, [
    pk,
    holder,
    now,
  ])
  if (rows.length === 0) throw new Lost()
}
