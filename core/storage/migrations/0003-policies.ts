import { Migration } from "@mikro-orm/migrations"
import { type Dialect, dialectOf } from "./dialect.ts"

/** What gates, paused sinks and the operations of dead letters need. */
export class Policies extends Migration {
  override up(): void {
    const dialect = dialectOf(this.driver)
    for (const part of [sinks, emissions, gates, deadLetters, counts]) {
      for (const statement of part(dialect)) this.addSql(statement)
    }
  }
}

const sinks = ({ text }: Dialect) => [`alter table sinks add column paused ${text}`]

// A member of an emission ends, and is pruned, with the newest member: its rows lie where that one lies.
const emissions = () => [
  `alter table matches add column kept_primary bigint`,
  `alter table matches add column kept_secondary bigint`,
  `create index matches_kept on matches (network, kept_primary, kept_secondary) where kept_primary is not null`,
]

const gates = ({ rowKey, text, sequences, entryKey }: Dialect) => [
  `create table gate_hits (
    pk ${rowKey} not null primary key,
    network ${text} not null,
    monitor ${text} not null,
    revision ${text} not null,
    gate_key ${text} not null,
    id ${text} not null,
    primary_pos bigint not null,
    secondary_pos bigint not null,
    event_time bigint not null,
    window_ms bigint not null,
    consumed integer not null,
    kept_primary bigint not null,
    kept_secondary bigint not null,
    payload ${text} not null
  )`,
  `create unique index gate_hits_identity on gate_hits (network, primary_pos, secondary_pos, monitor, id)`,
  `create index gate_hits_session on gate_hits (monitor, revision, gate_key, consumed, event_time)`,
  `create index gate_hits_kept on gate_hits (network, kept_primary, kept_secondary${entryKey("pk")})`,
  `create index gate_hits_time on gate_hits (network, event_time)`,
  `insert into counters (name, value) values ('hit', 0)`,
  ...(sequences ? [`create sequence numbers_hit as bigint increment by 10000`] : []),
]

const deadLetters = ({ text }: Dialect) => [
  `alter table deliveries add column dead_monitor ${text}`,
  `update deliveries set dead_monitor = (select m.monitor from matches m where m.pk = match_pk) where died is not null`,
  `create index deliveries_dead_monitor on deliveries (network, dead_monitor, died) where died is not null`,
  `create index deliveries_dead_sink_monitor on deliveries (network, sink, dead_monitor, died) where died is not null`,
  `create index deliveries_dead_retracted_sink on deliveries (network, sink, died)
    where kind = 'retracted' and died is not null`,
]

// Kept by triggers: whatever lets a delivery die or takes a letter away, the count is right. Counting 100,000 rows for
// every page would cost more than the page.
const counts = ({ text, database }: Dialect) => [
  `create table dead_letter_counts (
    network ${text} not null, sink ${text} not null, monitor ${text} not null, letters bigint not null,
    primary key (network, sink, monitor)
  )`,
  `insert into dead_letter_counts (network, sink, monitor, letters)
    select network, sink, dead_monitor, count(*) from deliveries where died is not null group by network, sink, dead_monitor`,
  ...(database === "sqlite" ? sqliteTriggers : postgresTriggers),
]

const count = (row: "new" | "old", by: 1 | -1) =>
  `insert into dead_letter_counts (network, sink, monitor, letters)
    values (${row}.network, ${row}.sink, ${row}.dead_monitor, ${by})
    on conflict (network, sink, monitor) do update set letters = dead_letter_counts.letters + (${by})`

const sqliteTriggers = (
  [
    ["inserted", "insert", "new", "new.died is not null"],
    ["died", "update of died", "new", "old.died is null and new.died is not null"],
    ["revived", "update of died", "old", "old.died is not null and new.died is null"],
    ["deleted", "delete", "old", "old.died is not null"],
  ] as const
).map(
  ([name, event, row, when]) =>
    `create trigger dead_letters_${name} after ${event} on deliveries when ${when}
    begin ${count(row, row === "new" ? 1 : -1)}; end`,
)

const dead = (rows: "new_rows" | "old_rows", by: 1 | -1) =>
  `select network, sink, dead_monitor, ${by} as letters from ${rows} where died is not null`

// Once a statement: a row that is updated again and again in one transaction costs more each time. The rows of a network
// are written by whoever holds the row of its pipeline, so that no one waits for these counts.
const postgresTriggers = (
  [
    ["inserted", "insert", "new table as new_rows", dead("new_rows", 1)],
    [
      "updated",
      "update",
      "old table as old_rows new table as new_rows",
      `${dead("new_rows", 1)} union all ${dead("old_rows", -1)}`,
    ],
    ["deleted", "delete", "old table as old_rows", dead("old_rows", -1)],
  ] as const
).flatMap(([name, event, tables, changes]) => [
  `create function count_dead_letters_${name}() returns trigger language plpgsql as $$ begin
    insert into dead_letter_counts (network, sink, monitor, letters)
    select network, sink, dead_monitor, sum(letters) from (${changes}) changes
    group by network, sink, dead_monitor having sum(letters) <> 0
    on conflict (network, sink, monitor) do update set letters = dead_letter_counts.letters + excluded.letters;
    return null;
  end $$`,
  `create trigger dead_letters_${name} after ${event} on deliveries referencing ${tables}
    for each statement execute function count_dead_letters_${name}()`,
])
