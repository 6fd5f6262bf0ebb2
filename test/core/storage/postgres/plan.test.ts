import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { beforeAll } from "vitest"
import { connection } from "../../../../core/storage/postgres/connection.ts"
import { open } from "../../../../core/storage/postgres/open.ts"
import { letterKinds } from "../../../../core/storage/tuples/dead-letter.ts"
import {
  deadLetterCountSql,
  deadLettersSql,
  lettersBetweenSql,
  openActionsSql,
  owedCountSql,
  sql,
} from "../../../../core/storage/postgres/sql.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

const either = [false, true]
const statements: Record<string, string> = { ...sql }
for (const sink of either) {
  for (const monitor of either) {
    const filter = `sink=${sink} monitor=${monitor}`
    for (const kinds of [letterKinds, letterKinds.slice(1), letterKinds.slice(2)]) {
      const parts = `${filter} kinds=${kinds.length}`
      statements[`deadLetters ${parts}`] = deadLettersSql({ sink, monitor, kinds })
      statements[`deadLettersBetween ${parts}`] = lettersBetweenSql({ sink, monitor, kinds })
    }
    for (const network of either) {
      statements[`deadLetterCount network=${network} ${filter}`] = deadLetterCountSql({ network, sink, monitor })
      statements[`owedCount network=${network} ${filter}`] = owedCountSql({ network, sink, monitor })
    }
  }
}

for (const network of either) {
  for (const type of either)
    statements[`openActions network=${network} type=${type}`] = openActionsSql({ network, type })
}

/** Many rows of one network, of which many are owed and many dead, as after the outage of a receiver. */
const filled = `
  insert into pipelines (network, epoch) select 'net' || n, 1 from generate_series(1, 5) n;
  insert into matches (pk, id, life, network, monitor, revision, primary_pos, secondary_pos, position, late, ended, payload)
    select n, md5(n::text), 1, 'net1', 'm' || n % 3, 'r', n / 10, n % 10, n, 0, 0, '{}' from generate_series(1, 50000) n;
  insert into deliveries (seq, network, sink, match_pk, kind, primary_pos, secondary_pos, state, attempts, slot, created_at,
      settled_at, died, dead_monitor, dead_kind)
    select n, 'net1', 's' || n % 2, n, 'match', n / 10, n % 10, (array['pending', 'delivered', 'dead'])[n % 3 + 1], 0, 1, 1,
      case when n % 3 > 0 then 1 end, case when n % 3 = 2 then n end, case when n % 3 = 2 then 'm' || n % 4 end,
      case when n % 3 = 2 then (array['match', 'ended', 'retracted'])[n % 5 / 2 + 1] end
    from generate_series(1, 50000) n;
  insert into gate_hits (pk, network, monitor, revision, gate_key, id, primary_pos, secondary_pos, event_time, window_ms,
      consumed, kept_primary, kept_secondary, payload)
    select n, 'net1', 'm' || n % 3, 'r', 'k' || n % 100, md5(n::text), n / 10, n % 10, n / 10, 1000, n % 2, n / 10, n % 10, '{}'
    from generate_series(1, 50000) n;
  insert into blockwatcher_events (id, type, version, depth, created_at, match_pk, match_id, life, kind, network, primary_pos)
    select md5(n::text) || k, 'match:m', 1, 0, n, n, md5(n::text), 1, k, 'net1', n / 10
    from generate_series(1, 20000) n, unnest(array['match', 'retracted']) k;
  insert into blockwatcher_action_deliveries (event_seq, action, match_id, state, attempts, due, created_at, settled_at)
    select seq, 'a', match_id, (array['waiting', 'succeeded'])[seq % 2 + 1], 0, 1, 1, case seq % 2 when 1 then 1 end
    from blockwatcher_events;
  insert into anchors (network, primary_pos, hash) select 'net1', n, 'h' from generate_series(1, 5000) n;
  insert into source_records (network, record_key, value, primary_pos, secondary_pos)
    select 'net1', 'key', 'v' || n, n, 0 from generate_series(1, 5000) n;
  analyze`

/** The planner's steps for each statement, as it plans them for a pipeline. */
const plansOf = Effect.fnUntraced(function* (url: string) {
  const plans = new Map<string, string>()
  const session = yield* connection(yield* open(Redacted.make(url))).session
  for (const [name, statement] of Object.entries(statements)) {
    const lines = yield* session.say<readonly [string]>(`EXPLAIN (GENERIC_PLAN) ${statement}`)
    plans.set(name, lines.map(([line]) => line).join("\n"))
  }
  return plans
}, Effect.scoped)

const plans = { empty: new Map<string, string>(), full: new Map<string, string>() }

beforeAll(() =>
  Effect.gen(function* () {
    const url = yield* postgres.database
    plans.empty = yield* plansOf(url)
    yield* Effect.promise(() => postgres.server.execute(new URL(url).pathname.slice(1), filled))
    plans.full = yield* plansOf(url)
  }).pipe(Effect.runPromise),
)

describe.each(["empty", "full"] as const)("hot statements on tables that are %s", (tables) => {
  for (const name of Object.keys(statements)) {
    it(`${name} reads no whole table of rows`, () => {
      const plan = plans[tables].get(name)!
      assert.notMatch(plan, /Seq Scan on (matches|deliveries|anchors|gate_hits|source_records|blockwatcher_\w+)/)
      // An index without a condition is read from end to end.
      const lines = plan.split("\n")
      lines.forEach((line, i) => {
        if (
          /Index (Only )?Scan .*on (matches|deliveries|anchors|gate_hits|source_records|blockwatcher_\w+)/.test(line)
        ) {
          assert.match(lines[i + 1] ?? "", /Index Cond/, plan)
        }
      })
    })
  }

  const indexes: ReadonlyArray<readonly [string, string, string]> = [
    ["owed", "deliveries_owed", "network = $1) AND (sink = $2) AND (seq > $3)"],
    ["openSlots", "deliveries_owed", "network = $1)"],
    ["nextOwedSink", "deliveries_owed", "network = $1) AND (sink > $2)"],
    [
      "newestLives",
      "matches_identity",
      "network = $1) AND (primary_pos = u.p) AND (secondary_pos = u.s) AND (id = u.id)",
    ],
    ["anyInRange", "matches_identity", "network = $1) AND (primary_pos >= $2) AND (primary_pos <= $3)"],
    ["settle", "deliveries_pkey", "seq = u.seq)"],
    ["standing", "matches_identity", "network = $1) AND (ROW(primary_pos, secondary_pos) >= ROW($2, $3))"],
    ["endMatches", "matches_pkey", "pk = u.pk)"],
    ["deliveriesOf", "deliveries_journal", "network = $1) AND (primary_pos = u.p) AND (match_pk = u.pk)"],
    ["reviveDead", "deliveries_dead_retracted", "network = $1) AND (ROW(primary_pos, secondary_pos) >= ROW($2, $3))"],
    ["letGo", "deliveries_pkey", "seq = ANY ($2))"],
    ["feedMatches", "matches_position", 'network = $1) AND ("position" > $2) AND ("position" <= $3)'],
    ["feedMatchesOf", "matches_monitor_position", 'network = $1) AND (monitor = $6) AND ("position" > $2)'],
    ["feedRetracted", "matches_ended", "network = $1) AND (ended_position > $2)"],
    ["feedRetractedOf", "matches_monitor_ended", "network = $1) AND (monitor = $5) AND (ended_position > $2)"],
    ["owedCount network=true sink=true monitor=true", "deliveries_owed", "network = p.network) AND (sink = $2)"],
    ["countOwed", "deliveries_owed", "network = $1) AND (sink = $2) AND (seq > $3)"],
    ["oldestOwed", "deliveries_owed", "network = $1) AND (sink = $2)"],
    ["standingMembers", "matches_kept", "network = $1) AND (ROW(kept_primary, kept_secondary) >= ROW($2, $3))"],
    ["replayDelivered", "deliveries_pkey", "seq = $3)"],
    ["replayFailed", "deliveries_pkey", "seq = $3)"],
    ["discard", "deliveries_pkey", "seq = ANY ($2))"],
    ["unheardRetractions", "deliveries_dead_retracted_sink", "network = $1) AND (sink = $2) AND (died > 0)"],
    ["deadLetter", "deliveries_pkey", "seq = $1)"],
    ["recordedHits", "gate_hits_identity", "network = $1) AND (primary_pos = u.p) AND (secondary_pos = u.s)"],
    [
      "sessionHits",
      "gate_hits_session",
      "monitor = u.monitor) AND (revision = u.revision) AND (gate_key = u.gate_key) AND (consumed = u.consumed) AND (event_time >= u.first) AND (event_time <= u.last)",
    ],
    [
      "sweepHits",
      "gate_hits_kept",
      "network = $1) AND (kept_primary < $2) AND (ROW(kept_primary, kept_secondary, pk) > ROW($3, $4, $5))",
    ],
    ["newestHit", "gate_hits_time", "network = $1)"],
    ["deleteHits", "gate_hits_pkey", "pk = ANY ($1))"],
    ["consumeHits", "gate_hits_pkey", "pk = u.pk)"],
    ["holdHits", "gate_hits_pkey", "pk = ANY ($1))"],
    ["deleteHitsBehind", "gate_hits_identity", "network = $1) AND (ROW(primary_pos, secondary_pos) > ROW($2, $3))"],
    ["records", "source_records_pkey", "network = $1) AND (ROW(record_key, value) > ROW($2, $3))"],
    ["forgetRecords", "source_records_pkey", "network = $1) AND (record_key = u.key) AND (value = u.value)"],
    [
      "deleteRecordsBehind",
      "source_records_cursor",
      "network = $1) AND (ROW(primary_pos, secondary_pos) > ROW($2, $3))",
    ],
    ["survivors", "gate_hits_kept", "network = $1) AND (ROW(kept_primary, kept_secondary) > ROW($2, $3))"],
    [
      "sweep",
      "deliveries_journal",
      "network = $1) AND (primary_pos < $2) AND (ROW(primary_pos, match_pk, seq) > ROW($3, $4, $5))",
    ],
    ["deleteMatches", "matches_pkey", "pk = ANY ($1))"],
    ["deleteMatches", "blockwatcher_events_match", "match_id = m.id) AND (life = m.life)"],
    ["matchState", "blockwatcher_events_match", "match_id = $1)"],
    ["retractEvents", "matches_pkey", "pk = u.pk)"],
    ["retractEvents", "blockwatcher_events_match", "match_id = m.id) AND (life = m.life)"],
    ["retractEvents", "blockwatcher_events_match", "match_id = a.match_id) AND (life = a.life)"],
    ["retractEvents", "blockwatcher_action_deliveries_event", "event_seq = "],
    ["owedToActions", "deliveries_owed", "network = $1) AND (sink = 'actions')"],
    ["letterToActions", "deliveries_pkey", "seq = $1)"],
    ["emitted", "deliveries_pkey", "seq = ANY ($2))"],
    ["sweepEvents", "blockwatcher_events_age", "network = $1) AND (created_at < $2) AND (ROW(created_at, seq"],
    ["sweepEvents", "blockwatcher_action_deliveries_event", "event_seq = e.seq)"],
    ["deleteEvents", "blockwatcher_events_pkey", "seq = ANY ($1))"],
    ["deleteActionDeliveries", "blockwatcher_action_deliveries_event", "event_seq = ANY ($1))"],
    [
      "deleteMatches",
      "deliveries_journal",
      "network = m.network) AND (primary_pos = COALESCE(m.kept_primary, m.primary_pos)) AND (match_pk = m.pk)",
    ],
    ...[1, 2, 3].flatMap((kinds): ReadonlyArray<readonly [string, string, string]> => [
      [
        `deadLetters sink=false monitor=false kinds=${kinds}`,
        "deliveries_letters",
        "network = $3) AND (dead_kind = 'retracted') AND (died > $2)",
      ],
      [
        `deadLetters sink=true monitor=false kinds=${kinds}`,
        "deliveries_letters_sink",
        "network = $3) AND (sink = $4) AND (dead_kind = 'retracted') AND (died > $2)",
      ],
      [
        `deadLetters sink=false monitor=true kinds=${kinds}`,
        "deliveries_letters_monitor",
        "network = $3) AND (dead_monitor = $4) AND (dead_kind = 'retracted') AND (died > $2)",
      ],
      [
        `deadLetters sink=true monitor=true kinds=${kinds}`,
        "deliveries_letters_sink_monitor",
        "network = $3) AND (sink = $4) AND (dead_monitor = $5) AND (dead_kind = 'retracted') AND (died > $2)",
      ],
      [
        `deadLettersBetween sink=true monitor=false kinds=${kinds}`,
        "deliveries_letters_sink",
        "network = $3) AND (sink = $4) AND (dead_kind = 'retracted') AND (died > $2) AND (died <= $5)",
      ],
    ]),
    ["endLetters", "deliveries_pkey", "seq = ANY ($1))"],
    [
      "retractionOwed",
      "matches_identity",
      "network = $1) AND (primary_pos = $2) AND (secondary_pos = $3) AND (id = $4)",
    ],
    ["retractionOwed", "deliveries_journal", "network = $1) AND (primary_pos = "],
  ]
  for (const [name, index, condition] of indexes) {
    it(`${name} is a lookup in ${index}`, () => {
      const plan = plans[tables].get(name)!
      const lines = plan.split("\n").map((line) =>
        line
          .replaceAll("::text", "")
          .replaceAll("d.", "")
          .replaceAll("m_1.", "")
          .replaceAll(/d_\d\./g, ""),
      )
      const found = lines.some((line, i) => line.includes(` ${index} on `) && (lines[i + 1] ?? "").includes(condition))
      assert.isTrue(found, plan)
    })
  }

  const bare =
    /^(owed|oldestOwed|nextOwedSink|feedMatches|feedMatchesOf|feedRetracted|feedRetractedOf|sweep|sweepHits|newestHit|reviveDead|unheardRetractions|standingMembers|survivors|deleteHitsBehind|sweepEvents|owedToActions|deadLetters(Between)? .*kinds=1)$/
  for (const name of Object.keys(statements).filter((statement) => bare.test(statement))) {
    it(`${name} needs no sort`, () => {
      assert.notMatch(plans[tables].get(name)!, /Sort/)
    })
  }
})
