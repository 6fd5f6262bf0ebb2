import { Migration } from "@mikro-orm/migrations"
import { type Dialect, dialectOf } from "./dialect.ts"

/** The tables and indexes of the first version. */
export class Initial extends Migration {
  override up(): void {
    const dialect = dialectOf(this.driver)
    for (const part of [resources, progress, numbers, matches, deliveries]) {
      for (const statement of part(dialect)) this.addSql(statement)
    }
  }
}

const resources = ({ text }: Dialect) => [
  `create table networks (id ${text} not null primary key, definition ${text} not null, revision ${text} not null)`,
  `create table monitors (
    id ${text} not null primary key,
    network ${text} not null,
    definition ${text} not null,
    revision ${text} not null,
    match_revision ${text} not null,
    effective_primary bigint,
    effective_secondary bigint
  )`,
  `create table sinks (id ${text} not null primary key, definition ${text} not null, revision ${text} not null)`,
  `create table seeds (kind ${text} not null, id ${text} not null, path ${text} not null, hash ${text} not null, primary key (kind, id))`,
]

const progress = ({ text }: Dialect) => [
  `create table pipelines (
    network ${text} not null primary key,
    epoch bigint not null,
    lease_until bigint not null default 0,
    lease_owner ${text},
    minted_primary bigint,
    minted_secondary bigint,
    checkpoint_primary bigint,
    checkpoint_secondary bigint,
    checkpoint_at bigint not null default 0,
    feed_position bigint not null default 0,
    paused integer not null default 0,
    invalidations bigint not null default 0,
    deleted integer not null default 0
  )`,
  `create table anchors (
    network ${text} not null, primary_pos bigint not null, hash ${text} not null, primary key (network, primary_pos)
  )`,
  `create table feed_trims (
    network ${text} not null, monitor ${text} not null, kind ${text} not null, position bigint not null,
    primary key (network, monitor, kind)
  )`,
  `create table counters (name ${text} not null primary key, value bigint not null)`,
  `insert into counters (name, value) values ('match', 0), ('delivery', 0), ('died', 0)`,
]

// Each number is the first of a block that one process gives out.
const numbers = ({ sequences }: Dialect) =>
  sequences
    ? ["match", "delivery", "died"].map((name) => `create sequence numbers_${name} as bigint increment by 10000`)
    : []

// An id hashes its cursor, so equal ids have equal cursors: with the cursor in front, new entries go to the right edge
// of the index instead of to a random page each. The payload comes last, so that other columns are read without it.
const matches = ({ rowKey, text }: Dialect) => [
  `create table matches (
    pk ${rowKey} not null primary key,
    id ${text} not null,
    life bigint not null,
    network ${text} not null,
    monitor ${text} not null,
    revision ${text} not null,
    primary_pos bigint not null,
    secondary_pos bigint not null,
    event_time bigint,
    position bigint,
    late integer not null,
    ended integer not null,
    ended_position bigint,
    emission ${text},
    payload ${text} not null
  )`,
  `create unique index matches_identity on matches (network, primary_pos, secondary_pos, id, life)`,
  `create index matches_position on matches (network, position)`,
  `create index matches_monitor_position on matches (network, monitor, position)`,
  `create index matches_ended on matches (network, ended_position) where ended_position is not null`,
  `create index matches_monitor_ended on matches (network, monitor, ended_position) where ended_position is not null`,
]

const deliveries = ({ rowKey, text, entryKey, updated }: Dialect) => [
  `create table deliveries (
    seq ${rowKey} not null primary key,
    network ${text} not null,
    sink ${text} not null,
    match_pk bigint not null,
    kind ${text} not null,
    primary_pos bigint not null,
    secondary_pos bigint not null,
    state ${text} not null,
    attempts bigint not null,
    slot integer not null,
    due bigint,
    digest ${text},
    created_at bigint not null,
    settled_at bigint,
    died bigint,
    reason ${text}
  )${updated}`,
  `create index deliveries_owed on deliveries (network, sink, seq) where settled_at is null`,
  `create index deliveries_journal on deliveries (network, primary_pos, match_pk${entryKey("seq")})`,
  `create index deliveries_dead on deliveries (network, died) where died is not null`,
  `create index deliveries_dead_sink on deliveries (network, sink, died) where died is not null`,
]
