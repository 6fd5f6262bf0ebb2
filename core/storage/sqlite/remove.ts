import type { EntityManager, QueryResult } from "@mikro-orm/sqlite"
import { openEvents } from "../events.ts"
import { RESET_PIPELINE } from "../network-row.ts"
import { setImmediate } from "node:timers/promises"
import type { Value } from "./native.ts"

const CHUNK = 1000

/** Runs a statement; answers how many rows it changed. */
const run = async (em: EntityManager, statement: string, values: ReadonlyArray<Value>): Promise<number> => {
  const done = await em.getConnection().execute<QueryResult>(statement, [...values], "run", em.getTransactionContext())
  return done.affectedRows
}

/** Repeats a bounded statement until it finds nothing more; other fibers run in between. */
const inChunks = async (em: EntityManager, statement: string, values: ReadonlyArray<Value>): Promise<void> => {
  while ((await run(em, statement, values)) > 0) await setImmediate()
}

/** Removes the events of a network's matches with their deliveries. */
const removeEvents = async (em: EntityManager, network: string): Promise<void> => {
  const next = `SELECT seq FROM blockwatcher_events WHERE network = ? ORDER BY created_at, seq LIMIT ${CHUNK}`
  while (true) {
    await run(em, `DELETE FROM blockwatcher_action_deliveries WHERE event_seq IN (${next})`, [network])
    if ((await run(em, `DELETE FROM blockwatcher_events WHERE seq IN (${next})`, [network])) === 0) return
    await setImmediate()
  }
}

/** Removes every row keyed by a network, in the present transaction, but for its pipeline row, which begins anew. */
export const removeNetwork = async (em: EntityManager, network: string): Promise<void> => {
  await inChunks(
    em,
    `DELETE FROM deliveries WHERE seq IN (SELECT seq FROM deliveries WHERE network = ? LIMIT ${CHUNK})`,
    [network],
  )
  await removeEvents(em, network)
  await inChunks(em, `DELETE FROM matches WHERE pk IN (SELECT pk FROM matches WHERE network = ? LIMIT ${CHUNK})`, [
    network,
  ])
  await inChunks(em, `DELETE FROM gate_hits WHERE pk IN (SELECT pk FROM gate_hits WHERE network = ? LIMIT ${CHUNK})`, [
    network,
  ])
  const once = (statement: string) => run(em, statement, [network])
  await inChunks(
    em,
    `DELETE FROM source_records WHERE rowid IN (SELECT rowid FROM source_records WHERE network = ? LIMIT ${CHUNK})`,
    [network],
  )
  await once(`DELETE FROM anchors WHERE network = ?`)
  await once(`DELETE FROM dead_letter_counts WHERE network = ?`)
  await once(`DELETE FROM invalidations WHERE network = ?`)
  await once(`DELETE FROM feed_trims WHERE network = ?`)
  await once(RESET_PIPELINE)
}

/**
 * Lets go of what a deleted sink or monitor owes or keeps as dead letters: rows that were never attempted are cancelled,
 * the others discarded, so that an invalidation still finds what a receiver may have heard of. Retractions of a deleted
 * monitor's matches are still owed to those who heard of these. So it is with deliveries to actions that do not run.
 */
export const releaseRows = async (
  em: EntityManager,
  by: { readonly sink: string } | { readonly monitor: string },
  now: number,
): Promise<void> => {
  const [column, value] = "sink" in by ? ["d.sink", by.sink] : ["m.monitor", by.monitor]
  const owed = "sink" in by ? "d.settled_at IS NULL" : "d.settled_at IS NULL AND d.kind = 'match'"
  for (const open of [owed, "d.died > 0"]) {
    await inChunks(
      em,
      `UPDATE deliveries SET state = CASE state WHEN 'pending' THEN 'cancelled' ELSE 'discarded' END,
        settled_at = ?, died = NULL, dead_monitor = NULL, dead_kind = NULL
      WHERE seq IN (SELECT d.seq FROM pipelines p CROSS JOIN deliveries d CROSS JOIN matches m ON m.pk = d.match_pk
        WHERE d.network = p.network AND ${open} AND ${column} = ? LIMIT ${CHUNK})`,
      [now, value],
    )
  }
  const toCancel = openEvents(by)
  if (toCancel === null) return
  await inChunks(
    em,
    `UPDATE blockwatcher_action_deliveries SET state = 'cancelled', settled_at = ? WHERE pk IN (
      SELECT d.pk FROM blockwatcher_action_deliveries d CROSS JOIN blockwatcher_events e ON e.seq = d.event_seq
      WHERE d.state IN ('waiting', 'parked') AND ${toCancel.where} LIMIT ${CHUNK})`,
    [now, ...toCancel.values],
  )
}
