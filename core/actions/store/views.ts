import type { Session, Value } from "./session.ts"

/** Where a delivery stands. */
export const deliveryStates = ["waiting", "running", "succeeded", "failed", "parked", "cancelled"] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** A delivery with its event, as it is shown. */
export interface DeliveryRow {
  readonly pk: number
  readonly action: string
  readonly state: DeliveryState
  readonly attempts: number
  readonly due: number
  readonly code: string | null
  readonly reason: string | null
  readonly createdAt: number
  readonly settledAt: number | null
  readonly event: string
  readonly type: string
  readonly tenant: string | null
  readonly matchId: string | null
}

export interface DeliveryFilter {
  readonly state?: DeliveryState
  readonly action?: string
}

type Row = { readonly [column: string]: unknown }

const COLUMNS = `d.pk, d.action, d.state, d.attempts, d.due, d.code, d.reason, d.created_at, d.settled_at,
  e.id as event, e.type, e.tenant, e.match_id from blockwatcher_action_deliveries d
  join blockwatcher_events e on e.seq = d.event_seq`

const rowOf = (row: Row): DeliveryRow => ({
  pk: Number(row["pk"]),
  action: row["action"] as string,
  state: row["state"] as DeliveryState,
  attempts: Number(row["attempts"]),
  due: Number(row["due"]),
  code: row["code"] as string | null,
  reason: row["reason"] as string | null,
  createdAt: Number(row["created_at"]),
  settledAt: row["settled_at"] == null ? null : Number(row["settled_at"]),
  event: row["event"] as string,
  type: row["type"] as string,
  tenant: row["tenant"] as string | null,
  matchId: row["match_id"] as string | null,
})

/** Deliveries in the order of their keys, behind one. */
export const readDeliveries = async (
  session: Session,
  { state, action }: DeliveryFilter,
  after: number,
  limit: number,
): Promise<ReadonlyArray<DeliveryRow>> => {
  const terms: ReadonlyArray<readonly [string, Value]> = [
    ["d.pk > ?", after],
    ...(action === undefined ? [] : [["d.action = ?", action] as const]),
    ...(state === undefined ? [] : [["d.state = ?", state] as const]),
  ]
  const rows = await session.all<Row>(
    `select ${COLUMNS} where ${terms.map(([term]) => term).join(" and ")} order by d.pk limit ?`,
    [...terms.map(([, value]) => value), limit],
  )
  return rows.map(rowOf)
}

export const readDelivery = async (session: Session, pk: number): Promise<DeliveryRow | null> => {
  const [row] = await session.all<Row>(`select ${COLUMNS} where d.pk = ?`, [pk])
  return row === undefined ? null : rowOf(row)
}

/** How many deliveries an action has in a state. */
export interface DeliveryCount {
  readonly action: string
  readonly state: DeliveryState
  readonly deliveries: number
}

export const countDeliveries = async (session: Session): Promise<ReadonlyArray<DeliveryCount>> => {
  const rows = await session.all<Row>(
    `select action, state, count(*) as deliveries from blockwatcher_action_deliveries
      group by action, state order by action, state`,
  )
  return rows.map((row) => ({
    action: row["action"] as string,
    state: row["state"] as DeliveryState,
    deliveries: Number(row["deliveries"]),
  }))
}

/** How many wait, and since when the oldest has been due. */
export const readBacklog = async (
  session: Session,
): Promise<{ readonly waiting: number; readonly oldest: number | null }> => {
  const [row] = await session.all<Row>(
    `select count(*) as waiting, min(due) as oldest from blockwatcher_action_deliveries where state = 'waiting'`,
  )
  return { waiting: Number(row!["waiting"]), oldest: row!["oldest"] == null ? null : Number(row!["oldest"]) }
}
