import { Effect } from "effect"
import { assert, beforeAll, describe, it } from "vitest"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { letterKinds } from "../../../../core/storage/tuples/dead-letter.ts"
import {
  deadLetterCountSql,
  deadLettersSql,
  lettersBetweenSql,
  openActionsSql,
  owedCountSql,
  sql,
} from "../../../../core/storage/sqlite/sql.ts"

const either = [false, true]
const statements: Record<string, string> = { ...sql }
for (const sink of either) {
  for (const monitor of either) {
    for (const kinds of [letterKinds, letterKinds.slice(1), letterKinds.slice(2)]) {
      const parts = `sink=${sink} monitor=${monitor} kinds=${kinds.length}`
      statements[`deadLetters ${parts}`] = deadLettersSql({ sink, monitor, kinds })
      statements[`deadLettersBetween ${parts}`] = lettersBetweenSql({ sink, monitor, kinds })
    }
    for (const network of either) {
      const filter = `network=${network} sink=${sink} monitor=${monitor}`
      statements[`deadLetterCount ${filter}`] = deadLetterCountSql({ network, sink, monitor })
      statements[`owedCount ${filter}`] = owedCountSql({ network, sink, monitor })
    }
  }
}

for (const network of either) {
  for (const type of either)
    statements[`openActions network=${network} type=${type}`] = openActionsSql({ network, type })
}

/** The planner's steps for each statement, on tables that are empty. */
const plans = new Map<string, ReadonlyArray<string>>()

beforeAll(() =>
  Effect.gen(function* () {
    const { native } = yield* open(":memory:")
    for (const [name, statement] of Object.entries(statements)) {
      const values = Array.from({ length: statement.split("?").length - 1 }, () => 1)
      const steps = native.prepare<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${statement}`).all(...values)
      plans.set(
        name,
        steps.map(({ detail }) => detail),
      )
    }
  }).pipe(Effect.scoped, Effect.runPromise),
)

const planOf = (name: string): ReadonlyArray<string> => plans.get(name)!

describe("hot statements", () => {
  for (const name of Object.keys(statements)) {
    it(`${name} reads no whole table of rows`, () => {
      const scans = planOf(name).filter((step) =>
        /^SCAN (matches|deliveries|m|d|e|anchors|gate_hits|source_records|blockwatcher_\w+)\b/.test(step),
      )
      assert.deepStrictEqual(scans, [])
    })
  }

  const sorted = [
    "owed",
    "nextOwedSink",
    "feedMatches",
    "feedMatchesOf",
    "feedRetracted",
    "feedRetractedOf",
    "sweep",
    "heard",
    "records",
    "sweepEvents",
    "matchState",
    "owedToActions",
  ]
  for (const name of [...sorted, ...Object.keys(statements).filter((name) => /^deadLetters(Between)? /.test(name))]) {
    it(`${name} needs no sort`, () => {
      const plan = planOf(name)
      assert.isNotEmpty(plan)
      assert.isFalse(
        plan.some((step) => step.includes("TEMP B-TREE")),
        plan.join("\n"),
      )
    })
  }

  const indexes: ReadonlyArray<readonly [string, string]> = [
    ["owed", "deliveries_owed (network=? AND sink=? AND seq>?)"],
    ["openSlots", "deliveries_owed (network=?)"],
    ["nextOwedSink", "deliveries_owed (network=? AND sink>?)"],
    ["newestLife", "matches_identity (network=? AND primary_pos=? AND secondary_pos=? AND id=?)"],
    ["anyInRange", "matches_identity (network=? AND primary_pos>? AND primary_pos<?)"],
    ["feedMatches", "matches_position (network=? AND position>? AND position<?)"],
    ["feedMatchesOf", "matches_monitor_position (network=? AND monitor=? AND position>? AND position<?)"],
    ["feedRetracted", "matches_ended (network=? AND ended_position>? AND ended_position<?)"],
    ["feedRetractedOf", "matches_monitor_ended (network=? AND monitor=? AND ended_position>? AND ended_position<?)"],
    ["owedCount network=true sink=true monitor=true", "deliveries_owed (network=? AND sink=?)"],
    ["delivered", "INTEGER PRIMARY KEY (rowid=?)"],
    ["sweep", "deliveries_journal (network=? AND (primary_pos,match_pk)>(?,?) AND primary_pos<?)"],
    ["deleteMatch", "deliveries_journal (network=? AND primary_pos=? AND match_pk=?)"],
    ["standing", "matches_identity (network=? AND (primary_pos,secondary_pos)>(?,?))"],
    ["letGo", "deliveries_journal (network=? AND primary_pos=? AND match_pk=?)"],
    ["heard", "deliveries_journal (network=? AND primary_pos=? AND match_pk=?)"],
    ["reviveDead", "deliveries_dead_retracted (network=? AND (primary_pos,secondary_pos)>(?,?))"],
    ...[1, 2, 3].flatMap((kinds): ReadonlyArray<readonly [string, string]> => [
      [
        `deadLetters sink=false monitor=false kinds=${kinds}`,
        "deliveries_letters (network=? AND dead_kind=? AND died>?)",
      ],
      [
        `deadLetters sink=true monitor=false kinds=${kinds}`,
        "deliveries_letters_sink (network=? AND sink=? AND dead_kind=? AND died>?)",
      ],
      [
        `deadLetters sink=false monitor=true kinds=${kinds}`,
        "deliveries_letters_monitor (network=? AND dead_monitor=? AND dead_kind=? AND died>?)",
      ],
      [
        `deadLetters sink=true monitor=true kinds=${kinds}`,
        "deliveries_letters_sink_monitor (network=? AND sink=? AND dead_monitor=? AND dead_kind=? AND died>?)",
      ],
      [
        `deadLettersBetween sink=true monitor=false kinds=${kinds}`,
        "COVERING INDEX deliveries_letters_sink (network=? AND sink=? AND dead_kind=? AND died>? AND died<?)",
      ],
    ]),
    ["endLetters", "deliveries_journal (network=? AND primary_pos=? AND match_pk=?)"],
    ["retractionOwed", "deliveries_journal (network=? AND primary_pos=? AND match_pk=?)"],
    [
      "deadLetterCount network=true sink=true monitor=true",
      "dead_letter_counts_1 (network=? AND sink=? AND monitor=? AND kind=?)",
    ],
    ["unheardRetractions", "deliveries_dead_retracted_sink (network=? AND sink=? AND died>?)"],
    ["standingMembers", "matches_kept (network=? AND (kept_primary,kept_secondary)>(?,?))"],
    ["hit", "gate_hits_identity (network=? AND primary_pos=? AND secondary_pos=? AND monitor=? AND id=?)"],
    ["hitsInRange", "gate_hits_identity (network=? AND primary_pos>? AND primary_pos<?)"],
    [
      "sessionHits",
      "gate_hits_session (monitor=? AND revision=? AND gate_key=? AND consumed=? AND event_time>? AND event_time<?)",
    ],
    ["newestHit", "gate_hits_time (network=?)"],
    ["sweepHits", "gate_hits_kept (network=? AND (kept_primary,kept_secondary)>(?,?) AND kept_primary<?)"],
    ["deleteHitsBehind", "gate_hits_identity (network=? AND (primary_pos,secondary_pos)>(?,?))"],
    ["matchState", "blockwatcher_events_match (match_id=?)"],
    ["eventOf", "blockwatcher_events_match (match_id=? AND life=?)"],
    ["deleteMatch", "blockwatcher_events_match (match_id=? AND life=?)"],
    ["retractTo", "blockwatcher_action_deliveries_event (event_seq=?)"],
    ["owedToActions", "deliveries_owed (network=? AND sink=?)"],
    ["letterToActions", "INTEGER PRIMARY KEY (rowid=?)"],
    ["sweepEvents", "blockwatcher_events_age (network=? AND created_at>? AND created_at<?)"],
    ["sweepEvents", "blockwatcher_action_deliveries_event (event_seq=?)"],
    ["deleteActionDeliveries", "blockwatcher_action_deliveries_event (event_seq=?)"],
    ["openActions network=true type=true", "blockwatcher_action_deliveries_due (state=?)"],
    ["survivors", "gate_hits_kept (network=? AND (kept_primary,kept_secondary)>(?,?))"],
  ]
  for (const [name, index] of indexes) {
    it(`${name} is a lookup in ${index}`, () => {
      const plan = planOf(name)
      assert.isTrue(
        plan.some((step) => step.endsWith(index)),
        plan.join("\n"),
      )
    })
  }
})
