import { places, type Session, type Value } from "./session.ts"

/** Beyond an action's time limit: how long others leave a delivery alone whose runner is not heard of, in ms. */
export const LEASE_MARGIN_MS = 60_000

/** How many deliveries are looked at for each that is claimed: several may be about one match. */
const LOOK_AT = 4

/** Who claims, and what. */
export interface Claim {
  readonly holder: string
  /** Each action's time limit, in ms. */
  readonly limits: ReadonlyMap<string, number>
  readonly limit: number
  readonly now: number
}

/** A delivery that was claimed, with its event. */
export interface Claimed {
  readonly pk: number
  readonly action: string
  readonly attempts: number
  /** The event's id. */
  readonly event: string
  readonly type: string
  readonly version: number
  readonly encoding: number | null
  readonly payload: string | null
  readonly tenant: string | null
  readonly traceparent: string | null
  readonly depth: number
  readonly matchId: string | null
  readonly life: number | null
  readonly kind: "match" | "retracted" | null
  readonly network: string | null
  readonly emission: string | null
}

type Row = { readonly [column: string]: unknown }

/** Any number will do that no other program takes its advisory lock by. */
const CLAIMING = 7_042_651_933

const claimSql = (actions: number): string => `
  with candidates as (
    select d.pk, d.match_id, d.due from blockwatcher_action_deliveries d
    where d.state = 'waiting' and d.due <= ? and not exists (
      select 1 from blockwatcher_action_deliveries r where r.match_id = d.match_id and r.state = 'running'
    )
    order by d.due, d.pk limit ?
  ), firsts as (
    select pk, due, row_number() over (partition by coalesce(match_id, cast(pk as text)) order by due, pk) as place
    from candidates
  )
  update blockwatcher_action_deliveries
  set state = 'running', holder = ?,
    lease_until = cast(? as bigint) + ${actions === 0 ? "0" : `case action ${"when ? then ? ".repeat(actions)}else 0 end`}
  where pk in (select pk from firsts where place = 1 order by due, pk limit ?) and state = 'waiting'
  returning pk, event_seq, action, attempts`

const eventSql = (count: number, withMatches: boolean): string => `
  select e.seq, e.id, e.type, e.version, e.encoding, e.tenant, e.traceparent, e.depth, e.match_id, e.life, e.kind, e.network,
    e.emission, ${withMatches ? "coalesce(e.payload, m.payload)" : "e.payload"} as payload
  from blockwatcher_events e${withMatches ? " left join matches m on m.pk = e.match_pk" : ""}
  where e.seq in (${Array.from({ length: count }, () => "?").join(", ")})`

const numberOf = (value: unknown): number | null => (value == null ? null : Number(value))

/**
 * Claims deliveries that are due, in the order of becoming so, of each match the first and none while another about it
 * runs; answers them in that order, with their events.
 *
 * @param withMatches whether the store is the runtime's, where the payloads of matches are
 */
export const claim = async (
  session: Session,
  withMatches: boolean,
  { holder, limits, limit, now }: Claim,
): Promise<ReadonlyArray<Claimed>> => {
  const terms: ReadonlyArray<Value> = [...limits].flat()
  // Two that claim at once would not see that the other one takes a delivery about the same match.
  if (session.database === "postgres") await session.all("select pg_advisory_xact_lock(?)", [CLAIMING])
  const claimed = await session.all<Row>(claimSql(limits.size), [
    now,
    limit * LOOK_AT,
    holder,
    now + LEASE_MARGIN_MS,
    ...terms,
    limit,
  ])
  if (claimed.length === 0) return []
  const seqs = [...new Set(claimed.map((row) => Number(row["event_seq"])))]
  const events = new Map(
    (await session.all<Row>(eventSql(seqs.length, withMatches), seqs)).map((row) => [Number(row["seq"]), row]),
  )
  return claimed
    .toSorted((a, b) => Number(a["pk"]) - Number(b["pk"]))
    .map((row) => {
      const event = events.get(Number(row["event_seq"]))!
      return {
        pk: Number(row["pk"]),
        action: row["action"] as string,
        attempts: Number(row["attempts"]),
        event: event["id"] as string,
        type: event["type"] as string,
        version: Number(event["version"]),
        encoding: numberOf(event["encoding"]),
        payload: event["payload"] as string | null,
        tenant: event["tenant"] as string | null,
        traceparent: event["traceparent"] as string | null,
        depth: Number(event["depth"]),
        matchId: event["match_id"] as string | null,
        life: numberOf(event["life"]),
        kind: event["kind"] as Claimed["kind"],
        network: event["network"] as string | null,
        emission: event["emission"] as string | null,
      }
    })
}

/** Takes the next number of each subject: from then on an earlier run of it writes nothing. Answers them by subject. */
export const takeNumbers = async (
  session: Session,
  subjects: ReadonlyArray<string>,
): Promise<ReadonlyMap<string, number>> => {
  // In one order, so that two that take the same ones wait for each other and do not lock each other out.
  const ordered = subjects.toSorted()
  const rows = await session.all<Row>(
    `insert into blockwatcher_runs (subject, number) values ${ordered.map(() => "(?, 1)").join(", ")}
      on conflict (subject) do update set number = blockwatcher_runs.number + 1 returning subject, number`,
    ordered,
  )
  return new Map(rows.map((row) => [row["subject"] as string, Number(row["number"])]))
}

/** Gives back what is held under leases that ran out; answers how many. */
export const giveBackExpired = (session: Session, now: number): Promise<number> =>
  session.run(
    `update blockwatcher_action_deliveries set state = 'waiting', due = ?, holder = null, lease_until = null
      where state = 'running' and lease_until <= ?`,
    [now, now],
  )

/** Who holds deliveries. */
export const holders = async (session: Session): Promise<ReadonlyArray<string>> => {
  const rows = await session.all<{ readonly holder: string }>(
    `select distinct holder from blockwatcher_action_deliveries where state = 'running' and holder is not null`,
  )
  return rows.map(({ holder }) => holder)
}

/** Gives back what some hold; answers how many. */
export const giveBackOf = (session: Session, gone: ReadonlyArray<string>, now: number): Promise<number> =>
  session.run(
    `update blockwatcher_action_deliveries set state = 'waiting', due = ?, holder = null, lease_until = null
      where state = 'running' and holder in ${places(1, gone.length)}`,
    [now, ...gone],
  )
