import type { EntityManager, QueryResult } from "@mikro-orm/postgresql"
import { openEvents } from "../events.ts"
import { RESET_PIPELINE } from "../network-row.ts"
import { letterKinds } from "../tuples/dead-letter.ts"

type Bound = string | number

const CHUNK = 10_000

/** Runs a statement; answers how many rows it changed. */
const run = async (em: EntityManager, statement: string, values: ReadonlyArray<Bound>): Promise<number> => {
  const done = await em.getConnection().execute<QueryResult>(statement, [...values], "run", em.getTransactionContext())
  return done.affectedRows
}

const all = (em: EntityManager, statement: string, values: ReadonlyArray<Bound>): Promise<Array<Record<string, any>>> =>
  em.getConnection().execute(statement, [...values], "all", em.getTransactionContext())

/**
 * Locks the rows of pipelines, so that their writers wait: those named, or all. In the order of their names, as everyone
 * does who locks several.
 */
export const lockPipelines = async (
  em: EntityManager,
  networks: ReadonlySet<string> | "all",
): Promise<ReadonlyArray<string>> => {
  const rows =
    networks === "all"
      ? await all(em, `SELECT network FROM pipelines ORDER BY network FOR UPDATE`, [])
      : await all(
          em,
          `SELECT network FROM pipelines WHERE network IN (${[...networks].map(() => "?").join(", ") || "NULL"})
            ORDER BY network FOR UPDATE`,
          [...networks],
        )
  return rows.map(({ network }) => network)
}

/** The networks that monitors belong to at present. */
export const networksOf = async (
  em: EntityManager,
  monitors: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  const ids = monitors.map(() => "?").join(", ") || "NULL"
  const rows = await all(em, `SELECT DISTINCT network FROM monitors WHERE id IN (${ids})`, monitors)
  return rows.map(({ network }) => network)
}

/** Deletes a network's rows from the lowest primary on, in statements that are never long. */
const deleteRows = async (
  em: EntityManager,
  table: "deliveries" | "matches" | "gate_hits" | "source_records",
  network: string,
): Promise<void> => {
  let after = Number.MIN_SAFE_INTEGER
  while (true) {
    const [edge] = await all(
      em,
      `SELECT primary_pos FROM ${table} WHERE network = ? AND primary_pos > ?
        ORDER BY primary_pos OFFSET ${CHUNK} LIMIT 1`,
      [network, after],
    )
    const upTo = edge === undefined ? Number.MAX_SAFE_INTEGER : Number(edge["primary_pos"])
    const chunk = [network, after, upTo]
    await run(em, `DELETE FROM ${table} WHERE network = ? AND primary_pos > ? AND primary_pos <= ?`, chunk)
    if (edge === undefined) return
    after = upTo
  }
}

/** Removes the events of a network's matches with their deliveries, some at a time. */
const removeEvents = async (em: EntityManager, network: string): Promise<void> => {
  const next = `ANY(ARRAY(SELECT seq FROM blockwatcher_events WHERE network = ? ORDER BY created_at, seq LIMIT ${CHUNK}))`
  while (true) {
    await run(em, `DELETE FROM blockwatcher_action_deliveries WHERE event_seq = ${next}`, [network])
    if ((await run(em, `DELETE FROM blockwatcher_events WHERE seq = ${next}`, [network])) === 0) return
  }
}

/** Removes every row keyed by a network, in the present transaction, but for its pipeline row, which begins anew. */
export const removeNetwork = async (em: EntityManager, network: string): Promise<void> => {
  await deleteRows(em, "deliveries", network)
  await removeEvents(em, network)
  await deleteRows(em, "matches", network)
  await deleteRows(em, "gate_hits", network)
  await deleteRows(em, "source_records", network)
  await run(em, `DELETE FROM dead_letter_counts WHERE network = ?`, [network])
  await run(em, `DELETE FROM anchors WHERE network = ?`, [network])
  await run(em, `DELETE FROM invalidations WHERE network = ?`, [network])
  await run(em, `DELETE FROM feed_trims WHERE network = ?`, [network])
  await run(em, RESET_PIPELINE, [network])
}

type Owing = { readonly sink: string } | { readonly monitor: string }

/** Lets go of rows in the order of a column that they all have, some at a time. */
const letGo = async (
  em: EntityManager,
  order: "seq" | "died",
  where: string,
  values: ReadonlyArray<Bound>,
  now: number,
): Promise<void> => {
  let after = 0
  while (true) {
    const [chosen] = await all(
      em,
      `WITH chosen AS MATERIALIZED (
          SELECT d.seq, d.${order} AS place FROM deliveries d JOIN matches m ON m.pk = d.match_pk
          WHERE ${where} AND d.${order} > ? ORDER BY d.${order} LIMIT ${CHUNK}),
        released AS (
          UPDATE deliveries SET state = CASE state WHEN 'pending' THEN 'cancelled' ELSE 'discarded' END,
            settled_at = ?, died = NULL, dead_monitor = NULL, dead_kind = NULL
          WHERE seq = ANY(ARRAY(SELECT seq FROM chosen)))
      SELECT count(*) AS rows, max(place) AS last FROM chosen`,
      [...values, after, now],
    )
    if (Number(chosen!["rows"]) < CHUNK) return
    after = Number(chosen!["last"])
  }
}

const owedSinks = async (em: EntityManager, network: string): Promise<ReadonlyArray<string>> => {
  const sinks: Array<string> = []
  while (true) {
    const [next] = await all(
      em,
      `SELECT sink FROM deliveries WHERE network = ? AND sink > ? AND settled_at IS NULL ORDER BY sink LIMIT 1`,
      [network, sinks.at(-1) ?? ""],
    )
    if (next === undefined) return sinks
    sinks.push(next["sink"])
  }
}

/**
 * Lets go of what a deleted sink or monitor owes or keeps as dead letters: rows that were never attempted are cancelled,
 * the others discarded, so that an invalidation still finds what a receiver may have heard of. Retractions of a deleted
 * monitor's matches are still owed to those who heard of these. So it is with deliveries to actions that do not run.
 *
 * @param networks all of them, locked
 */
export const releaseRows = async (
  em: EntityManager,
  networks: ReadonlyArray<string>,
  by: Owing,
  now: number,
): Promise<void> => {
  const [monitor, dead, own] =
    "sink" in by
      ? ["", " AND d.sink = ?", [by.sink]]
      : [" AND d.kind = 'match' AND m.monitor = ?", " AND d.dead_monitor = ?", [by.monitor]]
  for (const network of networks) {
    for (const sink of "sink" in by ? [by.sink] : await owedSinks(em, network)) {
      const values = [network, sink, ...("sink" in by ? [] : own)]
      await letGo(em, "seq", `d.network = ? AND d.sink = ? AND d.settled_at IS NULL${monitor}`, values, now)
    }
    for (const kind of letterKinds) {
      await letGo(em, "died", `d.network = ?${dead} AND d.dead_kind = ?`, [network, ...own, kind], now)
    }
  }
  await cancelDeliveries(em, by, now)
}

/** Cancels deliveries to actions, some at a time. One that has begun to run meanwhile is left. */
const cancelDeliveries = async (em: EntityManager, by: Owing, now: number): Promise<void> => {
  const toCancel = openEvents(by)
  if (toCancel === null) return
  const statement = `UPDATE blockwatcher_action_deliveries SET state = 'cancelled', settled_at = ?
    WHERE state IN ('waiting', 'parked') AND pk = ANY(ARRAY(
      SELECT d.pk FROM blockwatcher_action_deliveries d JOIN blockwatcher_events e ON e.seq = d.event_seq
      WHERE d.state IN ('waiting', 'parked') AND ${toCancel.where} LIMIT ${CHUNK}))`
  while ((await run(em, statement, [now, ...toCancel.values])) > 0);
}
