import { Effect, Redacted } from "effect"
import { connection, type Session } from "../../core/storage/postgres/connection.ts"
import type { Value } from "../../core/storage/postgres/native.ts"
import { open } from "../../core/storage/postgres/open.ts"
import { deadLetterCountSql, deadLettersSql, owedCountSql, sql } from "../../core/storage/postgres/sql.ts"
import { type Postgres, postgres } from "../../test/support/postgres.ts"
import { contend } from "../contender.ts"
import { letterKinds } from "../../core/storage/tuples/dead-letter.ts"
import type { StatementTimes } from "./statements.ts"

/**
 * Times each hot statement of PostgreSQL in a small and in a large database, over a connection to a server of its own. The
 * rows that a statement meets are those that the pipeline works on: the newest ones, and the oldest for pruning. Writes are
 * taken back.
 */
export interface PostgresStatementsTask {
  /** The numbers of delivery rows. */
  readonly sizes: ReadonlyArray<number>
}

type Parameters = (i: number) => ReadonlyArray<Value>

const CALLS = 20
const ROUNDS = 7
/** How many rows a statement works on at once. */
const BATCH = 16
const OWED = 350

/**
 * Fills a part of an empty database: row `n` has the keys, the primary and the position `n`, one delivery a match. The newest
 * are owed, some are dead, the rest is delivered; one in ten is a member of an emission.
 */
const fill = (first: number, last: number, rows: number): ReadonlyArray<string> => [
  `INSERT INTO matches (pk, id, life, network, monitor, revision, primary_pos, secondary_pos, event_time, position, late,
      ended, kept_primary, kept_secondary, payload)
    SELECT n, md5(n::text) || md5(n::text), 1, 'net', 'monitor-' || n % 10, 'r', n, 0, n, n, 0, 0,
      CASE n % 10 WHEN 0 THEN n END, CASE n % 10 WHEN 0 THEN 0 END, repeat('x', 300)
    FROM generate_series(${first}, ${last}) n`,
  `INSERT INTO deliveries (seq, network, sink, match_pk, kind, primary_pos, secondary_pos, state, attempts, slot, created_at,
      settled_at, died, dead_monitor, dead_kind)
    SELECT n, 'net', 'sink', n, CASE WHEN is_dead AND n % 3 = 0 THEN 'retracted' ELSE 'match' END, n, 0,
      CASE WHEN n > ${rows - OWED} THEN 'pending' WHEN is_dead THEN 'dead' ELSE 'delivered' END, 1, 1, 1,
      CASE WHEN n <= ${rows - OWED} THEN 1 END, CASE WHEN is_dead THEN n END,
      CASE WHEN is_dead THEN 'monitor-' || n % 10 END,
      CASE WHEN is_dead THEN CASE WHEN n % 3 = 0 THEN 'retracted' ELSE 'match' END END
    FROM (SELECT n, n <= ${rows - OWED} AND n % ${Math.floor(rows / 200)} = 0 AS is_dead
      FROM generate_series(${first}, ${last}) n) made`,
  `INSERT INTO gate_hits (pk, network, monitor, revision, gate_key, id, primary_pos, secondary_pos, event_time, window_ms,
      consumed, kept_primary, kept_secondary, payload)
    SELECT n, 'net', 'monitor-0', 'r', 'key-' || n / 10, md5(n::text), n, 0, n, 1000, n % 2, n, 0, repeat('x', 300)
    FROM generate_series(${first}, ${last}) n`,
]

const STEP = 25_000

/** Makes a database with so many rows; answers its address. */
const filled = Effect.fnUntraced(function* (server: Postgres, rows: number) {
  const url = Redacted.make(yield* Effect.promise(() => server.database(`rows_${rows}`)))
  const session = yield* connection(yield* open(url)).session
  for (let first = 1; first <= rows; first += STEP) {
    for (const statement of fill(first, Math.min(first + STEP - 1, rows), rows)) yield* session.say(statement)
  }
  yield* session.say(
    `INSERT INTO anchors (network, primary_pos, hash) SELECT 'net', n, 'h' FROM generate_series(${rows - 999}, ${rows}) n`,
    `INSERT INTO pipelines (network, epoch, feed_position) VALUES ('net', 1, ${rows})`,
    "ANALYZE",
  )
  return url
}, Effect.scoped)

const from = (first: number): ReadonlyArray<number> => Array.from({ length: BATCH }, (_, i) => first + i)
const all = <A extends string | number | null>(value: A): ReadonlyArray<A> => from(0).map(() => value)

const old = (i: number) => from(1 + i * BATCH)
const monitor = (i: number) => `monitor-${i % 10}`

/** The hot statements with their parameters: `i` counts the calls, so that each meets other rows. */
const statementsOf = (newest: number): Readonly<Record<string, readonly [string, Parameters]>> => {
  const owed = (i: number) => from(newest - OWED + 1 + i * BATCH)
  const recent = (i: number) => newest - OWED - (i + 1) * BATCH
  const next = (i: number) => from(newest + 1 + i * BATCH)
  const dead = (i: number) => Math.floor(newest / 200) * (1 + i)
  const deliveries = (i: number): ReadonlyArray<Value> => [
    next(i),
    all("sink"),
    next(i),
    next(i),
    all(0),
    all("pending"),
    all(0),
    all(null),
    all(null),
    all(null),
    all(null),
  ]
  const settle = (i: number, state: string): ReadonlyArray<Value> => [
    "net",
    1,
    owed(i),
    all(state),
    all(1),
    all(null),
    state === "dead" ? next(i) : all(null),
    all(state === "offered" ? "digest" : null),
  ]
  return {
    network: [sql.network, () => ["net"]],
    mint: [
      sql.mint,
      (i) => [
        "net",
        1,
        "match",
        0,
        next(i),
        next(i).map(String),
        all(1),
        all("monitor-0"),
        all("r"),
        next(i),
        all(0),
        all(1),
        next(i),
        all(null),
        all(null),
        all(null),
        all("x"),
        ...deliveries(i),
      ],
    ],
    addDeliveries: [sql.addDeliveries, (i) => ["net", 1, "retracted", ...deliveries(i)]],
    anyInRange: [sql.anyInRange, (i) => ["net", newest + i, newest + i + 9, 0]],
    newestLives: [sql.newestLives, (i) => ["net", from(recent(i)), all(0), all("id")]],
    putAnchors: [sql.putAnchors, (i) => ["net", from(recent(i)), all("0x1")]],
    anchorsAt: [sql.anchorsAt, (i) => ["net", from(recent(i))]],
    anchors: [sql.anchors, () => ["net", newest, 100]],
    revisions: [sql.revisions, (i) => ["net", [monitor(i)]]],
    recordedHits: [sql.recordedHits, (i) => ["net", from(recent(i)), all(0), all("monitor-0"), all("id")]],
    sessionHits: [
      sql.sessionHits,
      (i) => {
        const times = from(recent(i))
        const keys = times.map((n) => `key-${Math.floor(n / 10)}`)
        return ["net", all("monitor-0"), all("r"), keys, all(0), times.map((n) => n - 1000), times]
      },
    ],
    addHits: [
      sql.addHits,
      (i) => [
        "net",
        next(i),
        all("monitor-0"),
        all("r"),
        all("key"),
        next(i).map(String),
        next(i),
        all(0),
        next(i),
        all(1000),
        all(0),
        next(i),
        all(0),
        all("x"),
      ],
    ],
    consumeHits: [sql.consumeHits, (i) => [from(recent(i)), all(newest), all(0)]],
    offered: [sql.settle, (i) => settle(i, "offered")],
    delivered: [sql.settle, (i) => settle(i, "delivered")],
    dead: [sql.settle, (i) => settle(i, "dead")],
    owed: [sql.owed, () => ["net", "sink", 0, 256]],
    oldestOwed: [sql.oldestOwed, () => ["net", "sink"]],
    openSlots: [sql.openSlots, () => ["net"]],
    nextOwedSink: [sql.nextOwedSink, () => ["net", ""]],
    owedCount: [owedCountSql({ network: true, sink: true, monitor: true }), (i) => ["net", "sink", monitor(i)]],
    feedMatches: [sql.feedMatches, (i) => ["net", recent(i), recent(i) + 99, 1, 100]],
    feedMatchesOf: [sql.feedMatchesOf, (i) => ["net", recent(i), recent(i) + 999, 1, 100, monitor(i)]],
    feedRetracted: [sql.feedRetracted, () => ["net", newest, newest + 100, 100]],
    standing: [sql.standing, (i) => ["net", recent(i), 0, 100]],
    standingMembers: [sql.standingMembers, (i) => ["net", recent(i), 0, 100]],
    endMatches: [sql.endMatches, (i) => [from(recent(i)), next(i)]],
    deliveriesOf: [sql.deliveriesOf, (i) => ["net", from(recent(i)), from(recent(i))]],
    letGo: [sql.letGo, (i) => [1, owed(i)]],
    reviveDead: [sql.reviveDead, (i) => ["net", recent(i), 0, 100]],
    deadLetters: [deadLettersSql({ sink: false, monitor: false, kinds: letterKinds }), () => [50, 0, "net"]],
    deadLettersOf: [
      deadLettersSql({ sink: true, monitor: true, kinds: ["match"] }),
      (i) => [50, 0, "net", "sink", monitor(i)],
    ],
    deadLetterCount: [deadLetterCountSql({ network: true, sink: false, monitor: false }), () => ["net"]],
    deadLetter: [sql.deadLetter, (i) => [dead(i), "net"]],
    replayDelivered: [sql.replayDelivered, (i) => [1, 1, dead(i), "net"]],
    discard: [sql.discard, (i) => [1, [dead(i)], "net"]],
    unheardRetractions: [sql.unheardRetractions, () => ["net", "sink", 10]],
    offerRetractions: [sql.offerRetractions, (i) => [[dead(i)]]],
    deleteHitsBehind: [sql.deleteHitsBehind, (i) => ["net", newest - 4 * (i + 1), 0, 100]],
    survivors: [sql.survivors, (i) => ["net", newest - 4 * (i + 1), 0, 100]],
    holdHits: [sql.holdHits, (i) => [old(i)]],
    sweep: [sql.sweep, () => ["net", 500, 0, 0, 0, 100]],
    sweepHits: [sql.sweepHits, () => ["net", 500, 0, 0, 0, 100, newest]],
    deleteDeliveries: [sql.deleteDeliveries, (i) => [old(i)]],
    deleteMatches: [sql.deleteMatches, (i) => [old(i)]],
    deleteHits: [sql.deleteHits, (i) => [old(i)]],
    oldestMatches: [sql.oldestMatches, () => ["net", 500, 100]],
    trimMatches: [sql.trimMatches, (i) => [old(i)]],
    newestAnchor: [sql.newestAnchor, () => ["net", newest]],
    newestHit: [sql.newestHit, () => ["net"]],
  }
}

const timeOnce = Effect.fnUntraced(function* (session: Session, text: string, parameters: Parameters) {
  yield* session.say("BEGIN")
  const started = performance.now()
  for (let i = 0; i < CALLS; i++) yield* session.all(text, parameters(i))
  const micros = ((performance.now() - started) * 1000) / CALLS
  yield* session.say("ROLLBACK")
  return micros
})

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const planOf = Effect.fnUntraced(function* (session: Session, text: string) {
  const lines = yield* session.say<readonly [string]>(`EXPLAIN (GENERIC_PLAN) ${text}`)
  return lines.flatMap(([line]) => /(?:using|Seq Scan on) (\w+)/.exec(line)?.[1] ?? []).join(", ")
})

const measure = Effect.fnUntraced(function* ({ sizes }: PostgresStatementsTask) {
  const server = yield* postgres
  const urls: Array<Redacted.Redacted> = []
  for (const rows of sizes) urls.push(yield* filled(server, rows))
  const opened: Array<{ readonly session: Session; readonly rows: number }> = []
  for (const [i, rows] of sizes.entries())
    opened.push({ session: yield* connection(yield* open(urls[i]!)).session, rows })
  const statements: Array<StatementTimes> = []
  for (const [name, [text]] of Object.entries(statementsOf(sizes[0]!))) {
    const rounds: Array<ReadonlyArray<number>> = []
    for (let round = 0; round <= ROUNDS; round++) {
      // Sizes by turns, so that they share the machine's mood; the first round warms up.
      const micros: Array<number> = []
      for (const { session, rows } of opened) {
        micros.push(yield* timeOnce(session, text, statementsOf(rows)[name]![1]))
      }
      if (round > 0) rounds.push(micros)
    }
    const micros = sizes.map((_, size) => median(rounds.map((round) => round[size]!)))
    statements.push({ name, micros, plan: yield* planOf(opened.at(-1)!.session, text) })
  }
  return { statements }
})

await contend((task: PostgresStatementsTask) => Effect.runPromise(Effect.scoped(measure(task))))
