import type { Dialect } from "./migrations/dialect.ts"

/**
 * The statements that make the tables of durable actions. They are the same in every store, beside the tables of whatever
 * program the database belongs to.
 *
 * An event's `payload` is null where it is that of the match of `match_pk`; `network` and
 * `primary_pos` are those of the match. A
 * delivery's `settled_at` is null while it is waiting, running or parked.
 */
export const eventTables = (dialect: Dialect): ReadonlyArray<string> => [
  ...events(dialect),
  ...deliveries(dialect),
  ...records(dialect),
]

const events = ({ numbered, text, entryKey }: Dialect) => [
  `create table blockwatcher_events (
    seq ${numbered},
    id ${text} not null,
    type ${text} not null,
    version bigint not null,
    encoding bigint,
    payload ${text},
    tenant ${text},
    traceparent ${text},
    depth bigint not null,
    created_at bigint not null,
    match_pk bigint,
    match_id ${text},
    life bigint,
    kind ${text},
    network ${text},
    primary_pos bigint,
    emission ${text}
  )`,
  `create unique index blockwatcher_events_id on blockwatcher_events (id)`,
  `create index blockwatcher_events_match on blockwatcher_events (match_id, life) where match_id is not null`,
  `create index blockwatcher_events_age on blockwatcher_events (network, created_at${entryKey("seq")})`,
]

// That two deliveries about one match never run at once is kept by the index, whoever claims.
const deliveries = ({ numbered, text, entryKey, updated }: Dialect) => [
  `create table blockwatcher_action_deliveries (
    pk ${numbered},
    event_seq bigint not null,
    action ${text} not null,
    match_id ${text},
    state ${text} not null,
    attempts bigint not null,
    due bigint not null,
    lease_until bigint,
    holder ${text},
    code ${text},
    reason ${text},
    reader bigint,
    created_at bigint not null,
    settled_at bigint
  )${updated}`,
  `create unique index blockwatcher_action_deliveries_event on blockwatcher_action_deliveries (event_seq, action)`,
  `create unique index blockwatcher_action_deliveries_running on blockwatcher_action_deliveries (match_id)
    where state = 'running' and match_id is not null`,
  `create index blockwatcher_action_deliveries_due on blockwatcher_action_deliveries (state, due${entryKey("pk")})`,
  `create index blockwatcher_action_deliveries_action on blockwatcher_action_deliveries (action, state${entryKey("pk")})`,
]

const records = ({ text, keyed }: Dialect) => [
  `create table blockwatcher_handled_deliveries (
    delivery ${text} not null primary key, handled_at bigint not null
  )${keyed}`,
  `create table blockwatcher_provider_calls (
    delivery ${text} not null,
    place bigint not null,
    operation ${text} not null,
    arguments_hash ${text} not null,
    state ${text} not null,
    result ${text},
    sent_at bigint not null,
    primary key (delivery, place)
  )${keyed}`,
  `create table blockwatcher_runs (subject ${text} not null primary key, number bigint not null)${keyed}`,
]
