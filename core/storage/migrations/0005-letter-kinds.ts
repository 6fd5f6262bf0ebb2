import { Migration } from "@mikro-orm/migrations"
import { type Dialect, dialectOf } from "./dialect.ts"

/** What a dead letter is, so that those of a kind are found and counted without a look at the others. */
export class LetterKinds extends Migration {
  override up(): void {
    const dialect = dialectOf(this.driver)
    for (const part of [kinds, indexes, counts]) {
      for (const statement of part(dialect)) this.addSql(statement)
    }
  }
}

const kinds = ({ text, database }: Dialect) => [
  ...(database === "sqlite"
    ? ["inserted", "died", "revived", "deleted"].map((name) => `drop trigger dead_letters_${name}`)
    : ["inserted", "updated", "deleted"].map((name) => `drop function count_dead_letters_${name} cascade`)),
  `alter table deliveries add column dead_kind ${text}`,
  `update deliveries set dead_kind = case
      when kind = 'match' and exists (select 1 from matches m where m.pk = match_pk and m.ended = 1) then 'ended'
      else kind
    end where died is not null`,
]

/** The order of dying within each kind: a list of several merges them. */
const indexes = () => [
  ...["", "_sink", "_monitor", "_sink_monitor"].map((by) => `drop index deliveries_dead${by}`),
  `create index deliveries_letters on deliveries (network, dead_kind, died) where died is not null`,
  `create index deliveries_letters_sink on deliveries (network, sink, dead_kind, died) where died is not null`,
  `create index deliveries_letters_monitor on deliveries (network, dead_monitor, dead_kind, died) where died is not null`,
  `create index deliveries_letters_sink_monitor on deliveries (network, sink, dead_monitor, dead_kind, died)
    where died is not null`,
]

const counts = ({ text, database }: Dialect) => [
  `drop table dead_letter_counts`,
  `create table dead_letter_counts (
    network ${text} not null, sink ${text} not null, monitor ${text} not null, kind ${text} not null,
    letters bigint not null,
    primary key (network, sink, monitor, kind)
  )`,
  `insert into dead_letter_counts (network, sink, monitor, kind, letters)
    select network, sink, dead_monitor, dead_kind, count(*) from deliveries where died is not null
    group by network, sink, dead_monitor, dead_kind`,
  ...(database === "sqlite" ? sqliteTriggers : postgresTriggers),
]

const sqliteTriggers = (
  [
    ["inserted", "insert", "new", "new.dead_kind is not null"],
    ["came", "update of dead_kind", "new", "new.dead_kind is not null and new.dead_kind is not old.dead_kind"],
    ["left", "update of dead_kind", "old", "old.dead_kind is not null and old.dead_kind is not new.dead_kind"],
    ["deleted", "delete", "old", "old.dead_kind is not null"],
  ] as const
).map(
  ([name, event, row, when]) =>
    `create trigger dead_letters_${name} after ${event} on deliveries when ${when} begin
      insert into dead_letter_counts (network, sink, monitor, kind, letters)
      values (${row}.network, ${row}.sink, ${row}.dead_monitor, ${row}.dead_kind, ${row === "new" ? 1 : -1})
      on conflict (network, sink, monitor, kind) do update set letters = dead_letter_counts.letters + excluded.letters;
    end`,
)

const letters = (rows: "new_rows" | "old_rows", by: 1 | -1) =>
  `select network, sink, dead_monitor, dead_kind, ${by} as letters from ${rows} where dead_kind is not null`

// Once a statement: a row that is updated again and again in one transaction costs more each time. The rows of a network
// are written by whoever holds the row of its pipeline, so that no one waits for these counts.
const postgresTriggers = (
  [
    ["inserted", "insert", "new table as new_rows", letters("new_rows", 1)],
    [
      "updated",
      "update",
      "old table as old_rows new table as new_rows",
      `${letters("new_rows", 1)} union all ${letters("old_rows", -1)}`,
    ],
    ["deleted", "delete", "old table as old_rows", letters("old_rows", -1)],
  ] as const
).flatMap(([name, event, tables, changes]) => [
  `create function count_dead_letters_${name}() returns trigger language plpgsql as $$ begin
    insert into dead_letter_counts (network, sink, monitor, kind, letters)
    select network, sink, dead_monitor, dead_kind, sum(letters) from (${changes}) changes
    group by network, sink, dead_monitor, dead_kind having sum(letters) <> 0
    on conflict (network, sink, monitor, kind) do update set letters = dead_letter_counts.letters + excluded.letters;
    return null;
  end $$`,
  `create trigger dead_letters_${name} after ${event} on deliveries referencing ${tables}
    for each statement execute function count_dead_letters_${name}()`,
])
