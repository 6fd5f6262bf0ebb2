import { ACTIONS } from "../events.ts"
import { letterKinds, type LetterParts } from "../tuples/dead-letter.ts"

/**
 * Every statement of the hot path. Each is a lookup in an index, also at millions of rows; a test asks the planner.
 * CROSS JOIN fixes the order of a join, INDEXED BY the index where the planner, which has no statistics, prefers another.
 */

const owed = `d.settled_at IS NULL AND (d.kind = 'retracted' OR m.ended = 0)`
const matchOf = `CROSS JOIN matches m ON m.pk = d.match_pk`

/** A retraction is sent without the payload of its match. */
const sentPayload = `CASE d.kind WHEN 'match' THEN m.payload ELSE '' END`
const deliveryRow = `d.seq, m.monitor, m.id, m.life, d.kind, d.primary_pos, d.secondary_pos, d.state, d.attempts, d.slot, d.digest, m.event_time, ${sentPayload}`
const matchItem = `position, life, emission, late, id, monitor, primary_pos, secondary_pos, event_time, payload`
const retractedItem = `ended_position, life, id, monitor, primary_pos, secondary_pos`
const deadLetter = `d.seq, d.died, d.network, d.sink, m.monitor, m.id, m.life, m.primary_pos, m.secondary_pos, d.kind, d.attempts, d.reason, d.settled_at, m.payload, m.ended`

const stillOwed = `settled_at IS NULL
  AND (kind = 'retracted' OR NOT EXISTS (SELECT 1 FROM matches m WHERE m.pk = match_pk AND m.ended = 1))`

/** That no later life of a match stands, for which the receiver would take its retraction. */
const standsNoMore = `NOT EXISTS (SELECT 1 FROM matches later WHERE later.network = m.network AND later.primary_pos = m.primary_pos
      AND later.secondary_pos = m.secondary_pos AND later.id = m.id AND later.life > m.life AND later.ended = 0)`

/** What a retraction that died becomes when it is owed again. */
const owedAgain = `state = 'pending', attempts = 0, reason = NULL, settled_at = NULL, died = NULL, dead_monitor = NULL, dead_kind = NULL`
const discarded = `state = 'discarded', settled_at = ?, died = NULL, dead_monitor = NULL, dead_kind = NULL`

/** Letters of each kind, in the order of dying over all of them. Parameters: for each kind those of `where` behind its filter. */
const lettersSql = ({ sink, monitor, kinds }: LetterParts, columns: string, joined: string, where: string): string =>
  kinds
    .map(
      (
        kind,
      ) => `SELECT ${columns} FROM deliveries d INDEXED BY deliveries_letters${sink ? "_sink" : ""}${monitor ? "_monitor" : ""} ${joined}
      WHERE d.network = ?${sink ? " AND d.sink = ?" : ""}${monitor ? " AND d.dead_monitor = ?" : ""} AND d.dead_kind = '${kind}' AND ${where}`,
    )
    .join(" UNION ALL ")

/** Columns of an inserted match and delivery, in order. */
export const matchColumns =
  "pk, id, life, network, monitor, revision, primary_pos, secondary_pos, event_time, position, late, ended, emission, kept_primary, kept_secondary, payload"
export const deliveryColumns =
  "seq, network, sink, match_pk, kind, primary_pos, secondary_pos, state, attempts, slot, digest, created_at, settled_at, died, dead_monitor, dead_kind, reason"
export const hitColumns =
  "pk, network, monitor, revision, gate_key, id, primary_pos, secondary_pos, event_time, window_ms, consumed, kept_primary, kept_secondary, payload"
export const eventColumns =
  "seq, id, type, version, encoding, traceparent, depth, created_at, match_pk, match_id, life, kind, network, primary_pos, emission"
export const actionDeliveryColumns = "event_seq, action, match_id, state, attempts, due, created_at"

/** A row of the sink `actions` with what its event says. */
const actionRow = `d.seq, d.kind, m.monitor, m.pk, m.id, m.life, d.primary_pos, m.emission`

export const sql = {
  network: `SELECT epoch, deleted, lease_owner, lease_until, minted_primary, minted_secondary,
    checkpoint_primary, checkpoint_secondary, checkpoint_at, feed_position,
    start_primary, start_secondary, high_primary, swept_primary, pruned_primary, paused, invalidations FROM pipelines WHERE network = ?`,
  exists: `SELECT 1 FROM networks WHERE id = ?`,
  insertNetwork: `INSERT INTO pipelines (network, epoch) VALUES (?, ?)`,
  updateNetwork: `UPDATE pipelines SET epoch = ?, deleted = ?, lease_owner = ?, lease_until = ?,
    minted_primary = ?, minted_secondary = ?, checkpoint_primary = ?, checkpoint_secondary = ?, checkpoint_at = ?,
    feed_position = ?, start_primary = ?, start_secondary = ?, high_primary = ?, swept_primary = ?, pruned_primary = ?, paused = ?, invalidations = ?
    WHERE network = ?`,
  counter: `SELECT value FROM counters WHERE name = ?`,
  updateCounter: `UPDATE counters SET value = ? WHERE name = ?`,

  anyInRange: `SELECT 1 FROM matches WHERE network = ? AND primary_pos >= ? AND primary_pos <= ?
    AND (primary_pos, secondary_pos) >= (?, ?) LIMIT 1`,
  newestLife: `SELECT life, ended FROM matches WHERE network = ? AND primary_pos = ? AND secondary_pos = ? AND id = ?
    ORDER BY life DESC LIMIT 1`,
  putAnchor: `INSERT INTO anchors (network, primary_pos, hash) VALUES (?, ?, ?)
    ON CONFLICT (network, primary_pos) DO UPDATE SET hash = excluded.hash`,
  addAnchor: `INSERT INTO anchors (network, primary_pos, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
  anchor: `SELECT hash FROM anchors WHERE network = ? AND primary_pos = ?`,
  putRecord: `INSERT INTO source_records (network, record_key, value, primary_pos, secondary_pos) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (network, record_key, value) DO UPDATE SET primary_pos = excluded.primary_pos,
    secondary_pos = excluded.secondary_pos`,
  forgetRecord: `DELETE FROM source_records WHERE network = ? AND record_key = ? AND value = ?`,
  effective: `UPDATE monitors SET effective_primary = ?, effective_secondary = ?
    WHERE id = ? AND network = ? AND match_revision = ?`,

  delivered: `UPDATE deliveries SET state = 'delivered', attempts = ?, reason = ?, settled_at = ?
    WHERE seq = ? AND network = ? AND ${stillOwed}`,
  dead: `UPDATE deliveries SET state = 'dead', attempts = ?, reason = ?, settled_at = ?, died = ?,
    dead_monitor = (SELECT monitor FROM matches WHERE pk = match_pk), dead_kind = kind WHERE seq = ? AND network = ? AND ${stillOwed}`,
  tried: `UPDATE deliveries SET attempts = ? WHERE seq = ? AND network = ? AND settled_at IS NULL`,
  offeredAs: `UPDATE deliveries SET state = 'offered', digest = ? WHERE seq = ? AND network = ? AND ${stillOwed}`,
  offered: `UPDATE deliveries SET state = 'offered' WHERE seq = ? AND network = ? AND state = 'pending' AND ${stillOwed}`,

  invalidation: `SELECT from_primary, from_secondary, cause, retracted FROM invalidations WHERE network = ?`,
  putInvalidation: `INSERT INTO invalidations (network, from_primary, from_secondary, cause, retracted)
    VALUES (?, ?, ?, ?, 0) ON CONFLICT (network) DO UPDATE SET from_primary = excluded.from_primary,
    from_secondary = excluded.from_secondary, cause = excluded.cause, retracted = 0
    WHERE (excluded.from_primary, excluded.from_secondary) < (from_primary, from_secondary)`,
  standingMembers: `SELECT pk, primary_pos, secondary_pos, position, kept_primary, kept_secondary FROM matches INDEXED BY matches_kept
    WHERE network = ? AND kept_primary IS NOT NULL AND (kept_primary, kept_secondary) >= (?, ?)
    AND (primary_pos, secondary_pos) < (?, ?) AND ended = 0
    LIMIT ?`,
  standing: `SELECT pk, primary_pos, secondary_pos, position, kept_primary, kept_secondary FROM matches INDEXED BY matches_identity
    WHERE network = ? AND (primary_pos, secondary_pos) >= (?, ?) AND ended = 0
    ORDER BY primary_pos, secondary_pos, pk LIMIT ?`,
  endMatch: `UPDATE matches SET ended = 1, ended_position = ? WHERE pk = ?`,
  letGo: `UPDATE deliveries SET state = CASE state WHEN 'pending' THEN 'cancelled' ELSE 'discarded' END, settled_at = ?
    WHERE network = ? AND primary_pos = ? AND match_pk = ? AND kind = 'match' AND settled_at IS NULL`,
  endLetters: `UPDATE deliveries SET dead_kind = 'ended' WHERE network = ? AND primary_pos = ? AND match_pk = ?
    AND dead_kind = 'match'`,
  heard: `SELECT sink FROM deliveries WHERE network = ? AND primary_pos = ? AND match_pk = ? AND kind = 'match'
    AND state <> 'cancelled' ORDER BY seq`,
  reviveDead: `UPDATE deliveries SET ${owedAgain}
    WHERE seq IN (SELECT d.seq FROM deliveries d INDEXED BY deliveries_dead_retracted ${matchOf}
      WHERE d.network = ? AND d.kind = 'retracted' AND d.died IS NOT NULL AND (d.primary_pos, d.secondary_pos) >= (?, ?)
      AND ${standsNoMore} LIMIT ?)`,
  deadLetter: `SELECT ${deadLetter} FROM deliveries d ${matchOf} WHERE d.seq = ? AND d.network = ? AND d.died > 0`,
  retractionOwed: `SELECT 1 FROM matches m INDEXED BY matches_identity CROSS JOIN deliveries d INDEXED BY deliveries_journal
    WHERE m.network = ? AND m.primary_pos = ? AND m.secondary_pos = ? AND m.id = ?
    AND d.network = m.network AND d.primary_pos = coalesce(m.kept_primary, m.primary_pos) AND d.match_pk = m.pk
    AND d.sink = ? AND d.kind = 'retracted' AND d.settled_at IS NULL LIMIT 1`,
  letterCounts: `SELECT sink, monitor, sum(letters) FROM dead_letter_counts WHERE network = ?
    GROUP BY sink, monitor HAVING sum(letters) > 0 ORDER BY sink, monitor`,
  replayDelivered: `UPDATE deliveries SET state = 'delivered', attempts = ?, reason = NULL, settled_at = ?, died = NULL,
    dead_monitor = NULL, dead_kind = NULL WHERE seq = ? AND network = ? AND died IS NOT NULL`,
  replayFailed: `UPDATE deliveries SET attempts = ?, reason = ? WHERE seq = ? AND network = ? AND died IS NOT NULL`,
  discard: `UPDATE deliveries SET ${discarded} WHERE seq = ? AND network = ? AND died IS NOT NULL`,
  unheardRetractions: `SELECT d.seq, m.monitor, m.id, m.life, d.kind, d.primary_pos, d.secondary_pos, 'pending', 0, d.slot, d.digest, m.event_time, ''
    FROM deliveries d INDEXED BY deliveries_dead_retracted_sink ${matchOf}
    WHERE d.network = ? AND d.sink = ? AND d.died > 0 AND d.kind = 'retracted'
    AND ${standsNoMore}
    ORDER BY d.died LIMIT ?`,
  offerRetraction: `UPDATE deliveries SET ${owedAgain} WHERE seq = ?`,
  countOwed: `SELECT count(*), coalesce(max(seq), 0) FROM (SELECT seq FROM deliveries INDEXED BY deliveries_owed
    WHERE network = ? AND sink = ? AND settled_at IS NULL AND seq > ? ORDER BY seq LIMIT ?)`,
  oldestOwed: `SELECT d.created_at FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.sink = ? AND ${owed} ORDER BY d.seq LIMIT 1`,
  retracted: `UPDATE invalidations SET retracted = 1 WHERE network = ?`,
  deleteInvalidation: `DELETE FROM invalidations WHERE network = ?`,
  deleteAnchorsBehind: `DELETE FROM anchors WHERE network = ? AND primary_pos > ?`,
  deleteRecordsBehind: `DELETE FROM source_records WHERE network = ? AND (primary_pos, secondary_pos) > (?, ?)`,
  lowerEffective: `UPDATE monitors SET effective_primary = ?, effective_secondary = ?
    WHERE network = ? AND (effective_primary, effective_secondary) > (?, ?)`,

  hitsInRange: `SELECT 1 FROM gate_hits WHERE network = ? AND primary_pos >= ? AND primary_pos <= ? LIMIT 1`,
  hit: `SELECT 1 FROM gate_hits WHERE network = ? AND primary_pos = ? AND secondary_pos = ? AND monitor = ? AND id = ?`,
  sessionHits: `SELECT pk, id, primary_pos, secondary_pos, event_time FROM gate_hits INDEXED BY gate_hits_session
    WHERE monitor = ? AND revision = ? AND gate_key = ? AND consumed = ? AND event_time >= ? AND event_time <= ?`,
  hitPayload: `SELECT payload FROM gate_hits WHERE pk = ?`,
  consumeHit: `UPDATE gate_hits SET consumed = 1, kept_primary = ?, kept_secondary = ? WHERE pk = ?`,
  hasRevision: `SELECT 1 FROM monitors WHERE id = ? AND network = ? AND match_revision = ?`,
  deleteHitsBehind: `DELETE FROM gate_hits WHERE pk IN (
    SELECT pk FROM gate_hits WHERE network = ? AND (primary_pos, secondary_pos) > (?, ?) LIMIT ?)`,
  survivors: `SELECT pk, EXISTS (SELECT 1 FROM monitors r WHERE r.id = monitor AND r.match_revision = gate_hits.revision)
    FROM gate_hits WHERE network = ? AND (kept_primary, kept_secondary) > (?, ?) LIMIT ?`,
  holdHit: `UPDATE gate_hits SET consumed = 0, kept_primary = primary_pos, kept_secondary = secondary_pos WHERE pk = ?`,
  newestHit: `SELECT event_time FROM gate_hits WHERE network = ? ORDER BY event_time DESC LIMIT 1`,
  sweepHits: `SELECT kept_primary, kept_secondary, pk, event_time + window_ms < ? FROM gate_hits INDEXED BY gate_hits_kept
    WHERE network = ? AND kept_primary < ? AND (kept_primary, kept_secondary, pk) > (?, ?, ?)
    ORDER BY kept_primary, kept_secondary, pk LIMIT ?`,
  deleteHit: `DELETE FROM gate_hits WHERE pk = ?`,

  owed: `SELECT ${deliveryRow} FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.sink = ? AND d.seq > ? AND ${owed} ORDER BY d.seq LIMIT ?`,
  owedOfKind: `SELECT ${deliveryRow} FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.sink = ? AND d.seq > ? AND d.kind = ? AND ${owed} ORDER BY d.seq LIMIT ?`,
  openSlots: `SELECT d.primary_pos, d.secondary_pos, count(*) FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.slot = 1 AND ${owed} GROUP BY d.primary_pos, d.secondary_pos
    ORDER BY d.primary_pos, d.secondary_pos`,
  nextOwedSink: `SELECT d.sink FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.sink > ? AND ${owed} ORDER BY d.sink LIMIT 1`,
  anchors: `SELECT primary_pos, hash FROM anchors WHERE network = ? AND primary_pos <= ?
    ORDER BY primary_pos DESC LIMIT ?`,
  records: `SELECT record_key, value, primary_pos, secondary_pos FROM source_records
    WHERE network = ? AND (record_key, value) > (?, ?) ORDER BY record_key, value LIMIT ?`,

  lastEvent: `SELECT seq FROM sqlite_sequence WHERE name = 'blockwatcher_events'`,
  eventOf: `SELECT e.seq FROM matches m CROSS JOIN blockwatcher_events e INDEXED BY blockwatcher_events_match
    ON e.match_id = m.id AND e.life = m.life AND e.kind = 'match' WHERE m.pk = ?`,
  retractEvent: `INSERT INTO blockwatcher_events (seq, id, type, version, encoding, tenant, traceparent, depth, created_at, match_pk, match_id, life, kind, network, primary_pos, emission)
    SELECT ?, id || '-r', type, version, encoding, tenant, coalesce(?, traceparent), depth, ?, match_pk, match_id, life, 'retracted', network, primary_pos, emission
    FROM blockwatcher_events WHERE seq = ?`,
  retractTo: `INSERT INTO blockwatcher_action_deliveries (${actionDeliveryColumns})
    SELECT ?, action, match_id, 'waiting', 0, ?, ? FROM blockwatcher_action_deliveries WHERE event_seq = ? ORDER BY pk`,
  owedToActions: `SELECT ${actionRow} FROM deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = ? AND d.sink = '${ACTIONS}' AND ${owed} ORDER BY d.seq LIMIT ?`,
  letterToActions: `SELECT ${actionRow} FROM deliveries d ${matchOf}
    WHERE d.seq = ? AND d.network = ? AND d.sink = '${ACTIONS}' AND d.died > 0 AND m.ended = 0`,
  emitted: `UPDATE deliveries SET state = 'delivered', settled_at = ? WHERE seq = ?`,
  matchState: `SELECT m.ended, e.life FROM blockwatcher_events e INDEXED BY blockwatcher_events_match
    CROSS JOIN matches m ON m.pk = e.match_pk WHERE e.match_id = ? ORDER BY e.life DESC LIMIT 1`,

  feedMatches: `SELECT ${matchItem} FROM matches
    WHERE network = ? AND position > ? AND position <= ? AND ended <= ? ORDER BY position LIMIT ?`,
  feedMatchesOf: `SELECT ${matchItem} FROM matches INDEXED BY matches_monitor_position
    WHERE network = ? AND monitor = ? AND position > ? AND position <= ? AND ended <= ? ORDER BY position LIMIT ?`,
  feedRetracted: `SELECT ${retractedItem} FROM matches
    WHERE network = ? AND ended_position > ? AND ended_position <= ? ORDER BY ended_position LIMIT ?`,
  feedRetractedOf: `SELECT ${retractedItem} FROM matches INDEXED BY matches_monitor_ended
    WHERE network = ? AND monitor = ? AND ended_position > ? AND ended_position <= ? ORDER BY ended_position LIMIT ?`,
  feedState: `SELECT network, feed_position FROM pipelines WHERE network = ? AND deleted = 0`,
  feedStates: `SELECT network, feed_position FROM pipelines WHERE deleted = 0 ORDER BY network`,
  trims: `SELECT monitor, kind, position FROM feed_trims WHERE network = ?`,

  sweep: `SELECT primary_pos, match_pk, seq, state IN ('delivered', 'cancelled', 'discarded') FROM deliveries
    WHERE network = ? AND primary_pos < ? AND (primary_pos, match_pk, seq) > (?, ?, ?)
    ORDER BY primary_pos, match_pk, seq LIMIT ?`,
  deleteDelivery: `DELETE FROM deliveries WHERE seq = ?`,
  deleteMatch: `DELETE FROM matches WHERE pk = ? AND position IS NULL AND ended_position IS NULL
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.network = matches.network
      AND d.primary_pos = coalesce(matches.kept_primary, matches.primary_pos) AND d.match_pk = matches.pk)
    AND NOT EXISTS (SELECT 1 FROM blockwatcher_events e WHERE e.match_id = matches.id AND e.life = matches.life)`,
  sweepEvents: `SELECT e.created_at, e.seq, e.match_pk, e.primary_pos < ? AND NOT EXISTS (
      SELECT 1 FROM blockwatcher_action_deliveries d WHERE d.event_seq = e.seq AND coalesce(d.settled_at, ?) >= ?)
    FROM blockwatcher_events e INDEXED BY blockwatcher_events_age
    WHERE e.network = ? AND e.created_at < ? AND (e.created_at, e.seq, e.match_pk) > (?, ?, ?)
    ORDER BY e.created_at, e.seq LIMIT ?`,
  deleteActionDeliveries: `DELETE FROM blockwatcher_action_deliveries WHERE event_seq = ?`,
  deleteEvent: `DELETE FROM blockwatcher_events WHERE seq = ?`,
  oldestMatches: `SELECT pk, position, monitor, coalesce(kept_primary, primary_pos) FROM matches
    WHERE network = ? AND position > 0 AND position <= ? ORDER BY position LIMIT ?`,
  oldestRetracted: `SELECT pk, ended_position, monitor, coalesce(kept_primary, primary_pos) FROM matches
    WHERE network = ? AND ended_position > 0 AND ended_position <= ? ORDER BY ended_position LIMIT ?`,
  trimMatch: `UPDATE matches SET position = NULL WHERE pk = ?`,
  trimRetracted: `UPDATE matches SET ended_position = NULL WHERE pk = ?`,
  putTrim: `INSERT INTO feed_trims (network, monitor, kind, position) VALUES (?, ?, ?, ?)
    ON CONFLICT (network, monitor, kind) DO UPDATE SET position = max(position, excluded.position)`,
  newestAnchor: `SELECT primary_pos FROM anchors WHERE network = ? AND primary_pos <= ?
    ORDER BY primary_pos DESC LIMIT 1`,
  deleteAnchors: `DELETE FROM anchors WHERE network = ? AND primary_pos IN (
    SELECT primary_pos FROM anchors WHERE network = ? AND primary_pos < ? ORDER BY primary_pos LIMIT ?)`,
} as const

/** Dead letters behind one in the order of dying. Parameters: filter and died for each kind, limit. */
export const deadLettersSql = (parts: LetterParts): string =>
  `${lettersSql(parts, deadLetter, matchOf, "d.died > ?")} ORDER BY 2 LIMIT ?`

/** How many of the next letters there are, and the place of the last. Parameters: filter, after and up to for each kind, limit. */
export const lettersBetweenSql = (parts: LetterParts): string =>
  `SELECT count(*), coalesce(max(died), 0)
    FROM (${lettersSql(parts, "d.died AS died", "", "d.died > ? AND d.died <= ?")} ORDER BY 1 LIMIT ?)`

interface CountedBy {
  readonly network: boolean
  readonly sink: boolean
  readonly monitor: boolean
}

/** How many dead letters there are, as the triggers count them: any of network, sink and monitor, in this order. */
export const deadLetterCountSql = (by: CountedBy, kinds = letterKinds): string => {
  const where = (["network", "sink", "monitor"] as const).filter((name) => by[name]).map((name) => ` AND ${name} = ?`)
  return `SELECT coalesce(sum(letters), 0) FROM dead_letter_counts
    WHERE kind IN (${kinds.map((kind) => `'${kind}'`).join(", ")})${where.join("")}`
}

/** How many rows are owed, by any of network, sink and monitor, in this order of parameters. */
export const owedCountSql = (by: CountedBy): string =>
  `SELECT count(*) FROM pipelines p CROSS JOIN deliveries d INDEXED BY deliveries_owed ${matchOf}
    WHERE d.network = p.network${by.network ? " AND p.network = ?" : ""}${by.sink ? " AND d.sink = ?" : ""}
    AND ${owed}${by.monitor ? " AND m.monitor = ?" : ""}`

/** How many deliveries of matches to actions are not over, by network or the type of their event, in this order of parameters. */
export const openActionsSql = (by: { readonly network: boolean; readonly type: boolean }): string =>
  `SELECT count(*) FROM blockwatcher_action_deliveries d INDEXED BY blockwatcher_action_deliveries_due
    CROSS JOIN blockwatcher_events e ON e.seq = d.event_seq
    WHERE d.state IN ('waiting', 'running', 'parked') AND e.network ${by.network ? "= ?" : "IS NOT NULL"}${by.type ? " AND e.type = ?" : ""}`
