import { Effect } from "effect"
import type { Native, Value } from "../../core/storage/sqlite/native.ts"
import { open } from "../../core/storage/sqlite/open.ts"
import { deadLettersSql, deliveryColumns, matchColumns, sql } from "../../core/storage/sqlite/sql.ts"
import { contend } from "../contender.ts"
import { fill, type Filled } from "../filled-database.ts"

/**
 * Times each hot statement in a small and in a large database. The rows that a statement meets are those that the
 * pipeline works on: the newest ones, and the oldest for pruning. Writes are taken back.
 */
export interface StatementsTask {
  /** A database file and the number of its delivery rows, for each size. */
  readonly databases: ReadonlyArray<{ readonly path: string; readonly rows: number }>
}

/** One statement: µs a call for each size, and what the planner looks it up by. */
export interface StatementTimes {
  readonly name: string
  readonly micros: ReadonlyArray<number>
  readonly plan: string
}

type Parameters = (i: number) => ReadonlyArray<Value>

const CALLS = 200
const ROUNDS = 7

/** The hot statements with their parameters: `i` counts the calls, so that each meets another row. */
const statementsOf = ({
  network,
  sink,
  newest,
  monitor,
  id,
}: Filled): Readonly<Record<string, readonly [string, Parameters]>> => {
  const recent = (i: number) => newest - 200 - i
  return {
    insertMatch: [
      insertInto("matches", matchColumns),
      (i) => [
        newest + 1 + i,
        id(newest + 1 + i),
        1,
        network,
        monitor(i),
        "r",
        newest + 1 + i,
        0,
        1,
        newest + 1 + i,
        0,
        0,
        null,
        null,
        null,
        "x",
      ],
    ],
    insertDelivery: [
      insertInto("deliveries", deliveryColumns),
      (i) => [
        newest + 1 + i,
        network,
        sink,
        newest + 1 + i,
        "match",
        newest + 1 + i,
        0,
        "pending",
        0,
        1,
        null,
        1,
        null,
        null,
        null,
        null,
        null,
      ],
    ],
    network: [sql.network, () => [network]],
    counter: [sql.counter, () => ["delivery"]],
    anyInRange: [sql.anyInRange, (i) => [network, newest + i, newest + i + 9, newest + i, 0]],
    newestLife: [sql.newestLife, (i) => [network, recent(i), 0, id(recent(i))]],
    putAnchor: [sql.putAnchor, (i) => [network, recent(i), "0x1"]],
    anchor: [sql.anchor, (i) => [network, recent(i)]],
    anchors: [sql.anchors, () => [network, newest, 100]],
    hitsInRange: [sql.hitsInRange, (i) => [network, recent(i), recent(i) + 9]],
    hit: [sql.hit, (i) => [network, recent(i), 0, monitor(recent(i)), id(recent(i))]],
    sessionHits: [sql.sessionHits, (i) => [monitor(i), "r", "", 0, recent(i), recent(i) + 999]],
    offered: [sql.offered, (i) => [newest - (i % 100), network]],
    delivered: [sql.delivered, (i) => [1, null, 1, newest - (i % 100), network]],
    dead: [sql.dead, (i) => [1, "transient", 1, 1_000_000_000 + i, newest - (i % 100), network]],
    owed: [sql.owed, () => [network, sink, 0, 256]],
    openSlots: [sql.openSlots, () => [network]],
    nextOwedSink: [sql.nextOwedSink, () => [network, ""]],
    feedMatches: [sql.feedMatches, (i) => [network, recent(i), recent(i) + 99, 1, 100]],
    feedMatchesOf: [sql.feedMatchesOf, (i) => [network, monitor(i), recent(i), recent(i) + 999, 1, 100]],
    feedRetracted: [sql.feedRetracted, () => [network, newest, newest + 100, 100]],
    feedStates: [sql.feedStates, () => []],
    standingMembers: [sql.standingMembers, () => [network, recent(0), 0, recent(0), 0, 100]],
    standing: [sql.standing, (i) => [network, recent(i), 0, 100]],
    endMatch: [sql.endMatch, (i) => [newest + i, recent(i)]],
    letGo: [sql.letGo, (i) => [1, network, recent(i), recent(i)]],
    heard: [sql.heard, (i) => [network, recent(i), recent(i)]],
    reviveDead: [sql.reviveDead, () => [network, recent(0), 0, 100]],
    deadLetters: [deadLettersSql({ sink: false, monitor: false, kinds: ["match"] }), () => [network, 0, 50]],
    replayDelivered: [sql.replayDelivered, (i) => [1, 1, newest - (i % 100), network]],
    unheardRetractions: [sql.unheardRetractions, () => [network, sink, 100]],
    oldestOwed: [sql.oldestOwed, () => [network, sink]],
    sweep: [sql.sweep, () => [network, 500, 0, 0, 0, 100]],
    deleteDelivery: [sql.deleteDelivery, (i) => [1 + i]],
    deleteMatch: [sql.deleteMatch, (i) => [1 + i]],
    oldestMatches: [sql.oldestMatches, () => [network, 500, 100]],
    trimMatch: [sql.trimMatch, (i) => [1 + i]],
    newestAnchor: [sql.newestAnchor, () => [network, newest]],
  }
}

const insertInto = (table: string, columns: string): string =>
  `INSERT INTO ${table} (${columns}) VALUES (${columns.replaceAll(/[^,]+/g, "?")})`

const timeOnce = (native: Native, text: string, parameters: Parameters): number => {
  const statement = native.prepare(text)
  const call = /^\s*SELECT/.test(text)
    ? (values: ReadonlyArray<Value>) => void statement.all(...values)
    : (values: ReadonlyArray<Value>) => void statement.run(...values)
  native.exec("BEGIN IMMEDIATE")
  const started = performance.now()
  for (let i = 0; i < CALLS; i++) call(parameters(i))
  const micros = ((performance.now() - started) * 1000) / CALLS
  native.exec("ROLLBACK")
  return micros
}

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const planOf = (native: Native, text: string): string =>
  native
    .prepare<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
    .all(...Array.from({ length: text.split("?").length - 1 }, () => 1))
    .map(({ detail }) => /USING (?:COVERING )?(INDEX \w+|INTEGER PRIMARY KEY)/.exec(detail)?.[1] ?? detail)
    .join(", ")

const measure = Effect.fnUntraced(function* ({ databases }: StatementsTask) {
  const opened: Array<{ readonly native: Native; readonly filled: Filled }> = []
  for (const { path, rows } of databases) {
    const { native } = yield* open(path)
    opened.push({ native, filled: fill(native, rows) })
  }
  const statements: Array<StatementTimes> = []
  for (const [name, [text]] of Object.entries(statementsOf(opened[0]!.filled))) {
    // Sizes by turns, so that they share the machine's mood.
    const rounds = Array.from({ length: ROUNDS }, () =>
      opened.map(({ native, filled }) => timeOnce(native, text, statementsOf(filled)[name]![1])),
    )
    const micros = opened.map((_, size) => median(rounds.map((round) => round[size]!)))
    statements.push({ name, micros, plan: planOf(opened[0]!.native, text) })
  }
  return { statements }
})

await contend((task: StatementsTask) => Effect.runPromise(Effect.scoped(measure(task))))
