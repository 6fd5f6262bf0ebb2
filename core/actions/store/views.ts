import { places, type Session, type Value } from "./session.ts"

/** Where a delivery stands. */
export const deliveryStates = ["waiting", "running", "succeeded", "failed", "parked", "cancelled"] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** A delivery with its event, as it is shown. */
export interface DeliveryRow {
  readonly pk: number
  readonly action: string
  readonly state: DeliveryState
  /** Runs that failed. */
  readonly attempts: number
  /** When it may be run, in ms since 1970. */
  readonly due: number
  /** Why it is failed or parked: `attempts_exhausted`, `outcome_unknown`, `call_diverged`, `payload_unreadable`, … */
  readonly code: string | null
  /** The same in words; of one that waits, why its last run failed. */
  readonly reason: string | null
  readonly createdAt: number
  readonly settledAt: number | null
  /** The event's id and type (`match:<monitor>` for a monitor's matches and retractions). */
  readonly event: string
  readonly type: string
  /** The version of its type when it was emitted. */
  readonly version: number
  readonly tenant: string | null
  /** When the event was emitted, in ms since 1970. */
  readonly emittedAt: number
  /** Of a monitor's event: the match, which of its lives, whether it was taken back, and its network. Null of others. */
  readonly matchId: string | null
  readonly life: number | null
  readonly kind: "match" | "retracted" | null
  readonly network: string | null
}

export interface DeliveryFilter {
  /** All unless set. */
  readonly states?: ReadonlyArray<DeliveryState>
  /** All unless set. */
  readonly actions?: ReadonlyArray<string>
}

type Row = { readonly [column: string]: unknown }

const numberOf = (value: unknown): number | null => (value == null ? null : Number(value))

const COLUMNS = `d.pk, d.action, d.state, d.attempts, d.due, d.code, d.reason, d.created_at, d.settled_at,
  e.id as event, e.type, e.version, e.tenant, e.match_id, e.life, e.kind, e.network, e.created_at as emitted_at
  from blockwatcher_action_deliveries d join blockwatcher_events e on e.seq = d.event_seq`

const rowOf = (row: Row): DeliveryRow => ({
  pk: Number(row["pk"]),
  action: row["action"] as string,
  state: row["state"] as DeliveryState,
  attempts: Number(row["attempts"]),
  due: Number(row["due"]),
  code: row["code"] as string | null,
  reason: row["reason"] as string | null,
  createdAt: Number(row["created_at"]),
  settledAt: numberOf(row["settled_at"]),
  event: row["event"] as string,
  type: row["type"] as string,
  version: Number(row["version"]),
  tenant: row["tenant"] as string | null,
  matchId: row["match_id"] as string | null,
  life: numberOf(row["life"]),
  kind: row["kind"] as DeliveryRow["kind"],
  network: row["network"] as string | null,
  emittedAt: Number(row["emitted_at"]),
})

/** The first of one action in one state, which is a look-up however many there are. */
const OF_PAIR = `select pk from (select pk from blockwatcher_action_deliveries
  where action = ? and state = ? and pk > ? order by pk limit ?) pair`

/** The most of them in one statement: SQLite joins no more than 500 selects, and each count takes up to 5 ms of its thread. */
const PAIRS = { read: 250, counted: 6 }

const inChunks = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

const pairsOf = ({ states = deliveryStates, actions = [] }: DeliveryFilter) =>
  actions.flatMap((action) => states.map((state) => [action, state] as const))

/** Deliveries in the order of their keys, behind one. A filter by states names the actions, too. */
export const readDeliveries = async (
  session: Session,
  filter: DeliveryFilter,
  after: number,
  limit: number,
): Promise<ReadonlyArray<DeliveryRow>> => {
  if (filter.actions === undefined) {
    const rows = await session.all<Row>(`select ${COLUMNS} where d.pk > ? order by d.pk limit ?`, [after, limit])
    return rows.map(rowOf)
  }
  const found: Array<DeliveryRow> = []
  for (const pairs of inChunks(pairsOf(filter), PAIRS.read)) {
    const values: ReadonlyArray<Value> = pairs.flatMap((pair) => [...pair, after, limit])
    const rows = await session.all<Row>(
      `select ${COLUMNS} where d.pk in (${pairs.map(() => OF_PAIR).join(" union all ")}) order by d.pk limit ?`,
      [...values, limit],
    )
    found.push(...rows.map(rowOf))
  }
  return found.toSorted((a, b) => a.pk - b.pk).slice(0, limit)
}

export const readDelivery = async (session: Session, pk: number): Promise<DeliveryRow | null> => {
  const [row] = await session.all<Row>(`select ${COLUMNS} where d.pk = ?`, [pk])
  return row === undefined ? null : rowOf(row)
}

/** The actions that have deliveries, also those that the program does not have any more. */
export const readActions = async (session: Session): Promise<ReadonlyArray<string>> => {
  const rows = await session.all<Row>(
    `with recursive names (action) as (
      select min(action) from blockwatcher_action_deliveries
      union all
      select (select min(d.action) from blockwatcher_action_deliveries d where d.action > names.action)
        from names where names.action is not null
    ) select action from names where action is not null`,
  )
  return rows.map((row) => row["action"] as string)
}

/** How many deliveries an action has in a state. */
export interface DeliveryCount {
  readonly action: string
  readonly state: DeliveryState
  /** Counted no further than `COUNTED`. */
  readonly deliveries: number
  /** When the oldest of them came, in ms since 1970. */
  readonly oldest: number
}

/** Counts end here: those that have succeeded are kept for long, and reading them all takes its time. */
const COUNTED = 10_000

/** Counts deliveries by action and state; leaves out where there are none. */
export const countDeliveries = async (
  session: Session,
  filter: Required<DeliveryFilter>,
): Promise<ReadonlyArray<DeliveryCount>> => {
  const one = `select count(*) as deliveries, min(pk) as pk from (select pk from blockwatcher_action_deliveries
    where action = ? and state = ? order by pk limit ?) counted`
  const found: Array<DeliveryCount> = []
  for (const pairs of inChunks(pairsOf(filter), PAIRS.counted)) {
    const selects = pairs.map((_, place) => `select ${place} as place, pair${place}.* from (${one}) pair${place}`)
    const rows = await session.all<Row>(
      `select c.place, c.deliveries, d.created_at from (${selects.join(" union all ")}) c
        join blockwatcher_action_deliveries d on d.pk = c.pk order by c.place`,
      pairs.flatMap((pair) => [...pair, COUNTED]),
    )
    for (const row of rows) {
      const [action, state] = pairs[Number(row["place"])]!
      found.push({ action, state, deliveries: Number(row["deliveries"]), oldest: Number(row["created_at"]) })
    }
  }
  return found
}

/** How many wait, and since when the oldest has been due. */
export const readBacklog = async (
  session: Session,
): Promise<{ readonly waiting: number; readonly oldest: number | null }> => {
  const [row] = await session.all<Row>(
    `select count(*) as waiting, min(due) as oldest from blockwatcher_action_deliveries where state = 'waiting'`,
  )
  return { waiting: Number(row!["waiting"]), oldest: numberOf(row!["oldest"]) }
}

/** A recorded call, without what it was sent and answered. */
export interface CallRow {
  readonly delivery: string
  readonly place: number
  readonly operation: string
  readonly state: "intent" | "done"
  readonly sentAt: number
}

/** The recorded calls of deliveries, in the order of their making. */
export const readCalls = async (session: Session, keys: ReadonlyArray<string>): Promise<ReadonlyArray<CallRow>> => {
  if (keys.length === 0) return []
  const rows = await session.all<Row>(
    `select delivery, place, operation, state, sent_at from blockwatcher_provider_calls
      where delivery in ${places(1, keys.length)} order by delivery, place`,
    keys,
  )
  return rows.map((row) => ({
    delivery: row["delivery"] as string,
    place: Number(row["place"]),
    operation: row["operation"] as string,
    state: row["state"] as CallRow["state"],
    sentAt: Number(row["sent_at"]),
  }))
}
