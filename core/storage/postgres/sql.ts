import { ACTIONS, ENCODING } from "../events.ts"
import { letterKinds, type LetterParts } from "../tuples/dead-letter.ts"

/**
 * Every statement of the hot path, planned once for a connection and without statistics (see session.ts). What looks up
 * rows by the items of an array does so in a LATERAL part, or by the key alone: the planner then has no way to go through
 * the rows of a network instead. `coalesce` keeps it from an index that it must not take. A test asks the planner.
 */

const owed = `d.settled_at IS NULL AND (d.kind = 'retracted' OR m.ended = 0)`
const matchOf = `JOIN matches m ON m.pk = d.match_pk`

/** A retraction is sent without the payload of its match. */
const sentPayload = `CASE d.kind WHEN 'match' THEN m.payload ELSE '' END`
const deliveryRow = `d.seq, m.monitor, m.id, m.life, d.kind, d.primary_pos, d.secondary_pos, d.state, d.attempts, d.slot, d.digest, m.event_time, ${sentPayload}`
const matchItem = `position, life, emission, late, id, monitor, primary_pos, secondary_pos, event_time, payload`
const standingMatch = `pk, primary_pos, secondary_pos, position, kept_primary, kept_secondary`
const retractedItem = `ended_position, life, id, monitor, primary_pos, secondary_pos`
const deadLetter = `d.seq, d.died, d.network, d.sink, m.monitor, m.id, m.life, m.primary_pos, m.secondary_pos, d.kind, d.attempts, d.reason, d.settled_at, m.payload, m.ended`

/** Columns of a pipeline, in the order of its tuple. */
export const pipelineColumns = `epoch, deleted, lease_owner, lease_until, minted_primary, minted_secondary,
  checkpoint_primary, checkpoint_secondary, checkpoint_at, feed_position,
  start_primary, start_secondary, high_primary, swept_primary, pruned_primary, paused, invalidations`

/** What a retraction that died becomes when it is owed again. */
const owedAgain = `state = 'pending', attempts = 0, reason = NULL, settled_at = NULL, died = NULL, dead_monitor = NULL, dead_kind = NULL`

/** That no later life of a match stands, for which the receiver would take its retraction. */
const standsNoMore = `NOT EXISTS (SELECT 1 FROM matches later WHERE later.network = m.network AND later.primary_pos = m.primary_pos
      AND later.secondary_pos = m.secondary_pos AND later.id = m.id AND later.life > m.life AND later.ended = 0)`

const deliveryColumns = `seq, network, sink, match_pk, kind, primary_pos, secondary_pos, state, attempts, slot, digest, created_at, settled_at, died, dead_monitor, dead_kind, reason`

/** The rows of deliveries from arrays, behind `first` parameters of which $1 is the network, $2 the time and $3 the kind. */
const deliveriesFrom = (first: number): string => {
  const types = "bigint text bigint bigint bigint text integer text bigint text text".split(" ")
  const arrays = types.map((type, i) => `$${first + 1 + i}::${type}[]`)
  return `INSERT INTO deliveries (${deliveryColumns})
    SELECT u.seq, $1, u.sink, u.pk, $3, u.p, u.s, u.state, 0, u.slot, u.digest, $2,
      CASE WHEN u.state IN ('dead', 'delivered') THEN $2::bigint END, u.died, u.dead_monitor,
      CASE u.state WHEN 'dead' THEN $3 END, u.reason
    FROM unnest(${arrays.join(", ")}) u(seq, sink, pk, p, s, state, slot, digest, died, dead_monitor, reason)`
}

/**
 * The next letters in the order of dying: of each kind a page is read in the order of its index, and no more are sorted.
 * Parameters: limit, after, and those of the filter.
 */
const lettersSql = ({ sink, monitor, kinds }: LetterParts, columns: string, joined = "", upTo = ""): string => {
  let last = 2
  const next = () => `$${++last}`
  const where = [
    `d.network = ${next()}`,
    ...(sink ? [`d.sink = ${next()}`] : []),
    ...(monitor ? [`d.dead_monitor = ${next()}`] : []),
    "d.died > $2",
    ...(upTo === "" ? [] : [`d.died <= ${next()}`]),
  ].join(" AND ")
  const [first, ...others] = kinds.map(
    (kind) => `SELECT ${columns} FROM deliveries d ${joined} WHERE ${where} AND d.dead_kind = '${kind}'
      ORDER BY d.died LIMIT $1`,
  )
  if (others.length === 0) return first!
  return `(${[first, ...others].join(") UNION ALL (")}) ORDER BY died LIMIT $1`
}

/** Where events are put, but for what their deliveries go by. */
const eventColumns = `id, type, version, encoding, tenant, traceparent, depth, created_at, match_pk, match_id, life, kind, network, primary_pos, emission`
const actionDeliveryColumns = `event_seq, action, match_id, state, attempts, due, created_at`

/** A row of the sink `actions` with what its event says. */
const actionRow = `d.seq, d.kind, m.monitor, m.pk, m.id, m.life, d.primary_pos, m.emission`

export const sql = {
  exists: `SELECT 1 FROM networks WHERE id = $1`,
  clock: `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`,
  network: `SELECT ${pipelineColumns} FROM pipelines WHERE network = $1`,
  insertNetwork: `INSERT INTO pipelines (network, epoch) VALUES ($1, 0) ON CONFLICT DO NOTHING`,
  nextBlock: `SELECT nextval($1::text::regclass)`,
  counter: `SELECT value FROM counters WHERE name = $1`,

  anyInRange: `SELECT 1 FROM matches WHERE network = $1 AND primary_pos >= $2 AND primary_pos <= $3
    AND (primary_pos, secondary_pos) >= ($2, $4) LIMIT 1`,
  newestLives: `SELECT u.place, n.life, n.ended
    FROM unnest($2::bigint[], $3::bigint[], $4::text[]) WITH ORDINALITY u(p, s, id, place)
    CROSS JOIN LATERAL (SELECT m.life, m.ended FROM matches m
      WHERE m.network = $1 AND m.primary_pos = u.p AND m.secondary_pos = u.s AND m.id = u.id
      ORDER BY m.life DESC LIMIT 1) n`,
  mint: `WITH minted AS (
      INSERT INTO matches (network, pk, id, life, monitor, revision, primary_pos, secondary_pos, event_time, position,
        late, ended, emission, kept_primary, kept_secondary, payload)
      SELECT $1, u.pk, u.id, u.life, u.monitor, u.revision, u.p, u.s, u.time, u.position, $4, 0, u.emission, u.kept_p,
        u.kept_s, u.payload
      FROM unnest($5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
        $12::bigint[], $13::bigint[], $14::text[], $15::bigint[], $16::bigint[], $17::text[])
        u(pk, id, life, monitor, revision, p, s, time, position, emission, kept_p, kept_s, payload))
    ${deliveriesFrom(17)}`,
  addDeliveries: deliveriesFrom(3),
  putAnchors: `INSERT INTO anchors (network, primary_pos, hash)
    SELECT $1, u.p, u.hash FROM unnest($2::bigint[], $3::text[]) u(p, hash)
    ON CONFLICT (network, primary_pos) DO UPDATE SET hash = excluded.hash`,
  addAnchors: `INSERT INTO anchors (network, primary_pos, hash)
    SELECT $1, u.p, u.hash FROM unnest($2::bigint[], $3::text[]) u(p, hash) ON CONFLICT DO NOTHING`,
  anchorsAt: `SELECT primary_pos, hash FROM anchors WHERE network = $1 AND primary_pos = ANY($2::bigint[])`,
  putRecords: `INSERT INTO source_records (network, record_key, value, primary_pos, secondary_pos)
    SELECT $1, u.key, u.value, u.p, u.s FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) u(key, value, p, s)
    ON CONFLICT (network, record_key, value) DO UPDATE SET primary_pos = excluded.primary_pos,
    secondary_pos = excluded.secondary_pos`,
  forgetRecords: `DELETE FROM source_records WHERE ctid = ANY(ARRAY(
    SELECT n.ctid FROM unnest($2::text[], $3::text[]) u(key, value)
    CROSS JOIN LATERAL (SELECT r.ctid FROM source_records r
      WHERE r.network = $1 AND r.record_key = u.key AND r.value = u.value OFFSET 0) n))`,
  effective: `UPDATE monitors SET effective_primary = u.p, effective_secondary = u.s
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) u(id, match_revision, p, s)
    WHERE monitors.id = u.id AND monitors.network = $1 AND monitors.match_revision = u.match_revision`,

  revisions: `SELECT m.id, m.match_revision FROM monitors m WHERE m.id = ANY($2::text[]) AND m.network = $1`,
  recordedHits: `SELECT u.place
    FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) WITH ORDINALITY u(p, s, monitor, id, place)
    CROSS JOIN LATERAL (SELECT h.monitor, h.id FROM gate_hits h
      WHERE h.network = $1 AND (h.primary_pos, h.secondary_pos) = (u.p, u.s)
      ORDER BY h.monitor, h.id OFFSET 0) n
    WHERE n.monitor = u.monitor AND n.id = u.id`,
  sessionHits: `SELECT u.place, n.pk, n.id, n.primary_pos, n.secondary_pos, n.event_time
    FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::bigint[])
      WITH ORDINALITY u(monitor, revision, gate_key, consumed, first, last, place)
    CROSS JOIN LATERAL (SELECT h.network, h.pk, h.id, h.primary_pos, h.secondary_pos, h.event_time FROM gate_hits h
      WHERE h.monitor = u.monitor AND h.revision = u.revision
      AND h.gate_key = u.gate_key AND h.consumed = u.consumed AND h.event_time >= u.first AND h.event_time <= u.last
      OFFSET 0) n
    WHERE n.network = $1`,
  addHits: `INSERT INTO gate_hits (network, pk, monitor, revision, gate_key, id, primary_pos, secondary_pos, event_time,
      window_ms, consumed, kept_primary, kept_secondary, payload)
    SELECT $1, u.* FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
      $9::bigint[], $10::bigint[], $11::integer[], $12::bigint[], $13::bigint[], $14::text[]) u`,
  consumeHits: `UPDATE gate_hits h SET consumed = 1, kept_primary = u.p, kept_secondary = u.s
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u(pk, p, s) WHERE h.pk = u.pk RETURNING h.pk, h.payload`,

  // Whatever ends a match lets go of its rows in the same transaction: what is open is owed.
  settle: `UPDATE deliveries d SET state = u.state,
      attempts = CASE u.state WHEN 'offered' THEN d.attempts ELSE u.attempts END,
      reason = CASE u.state WHEN 'offered' THEN d.reason ELSE u.reason END,
      digest = coalesce(u.digest, d.digest),
      settled_at = CASE u.state WHEN 'offered' THEN NULL ELSE $2::bigint END,
      died = u.died,
      dead_monitor = CASE u.state WHEN 'dead' THEN (SELECT m.monitor FROM matches m WHERE m.pk = d.match_pk) END,
      dead_kind = CASE u.state WHEN 'dead' THEN d.kind END
    FROM unnest($3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::text[])
      u(seq, state, attempts, reason, died, digest)
    WHERE d.seq = u.seq AND coalesce(d.network) = $1 AND coalesce(d.settled_at, -1) = -1
      AND (u.state <> 'offered' OR d.state = 'pending' OR u.digest IS NOT NULL)`,

  tried: `UPDATE deliveries d SET attempts = u.attempts FROM unnest($2::bigint[], $3::bigint[]) u(seq, attempts)
    WHERE d.seq = u.seq AND coalesce(d.network) = $1 AND coalesce(d.settled_at, -1) = -1`,

  invalidation: `SELECT from_primary, from_secondary, cause, retracted FROM invalidations WHERE network = $1`,
  putInvalidation: `INSERT INTO invalidations AS i (network, from_primary, from_secondary, cause, retracted)
    VALUES ($1, $2, $3, $4, 0) ON CONFLICT (network) DO UPDATE SET from_primary = excluded.from_primary,
    from_secondary = excluded.from_secondary, cause = excluded.cause, retracted = 0
    WHERE (excluded.from_primary, excluded.from_secondary) < (i.from_primary, i.from_secondary)`,
  standingMembers: `SELECT ${standingMatch} FROM (SELECT * FROM matches
      WHERE network = $1 AND kept_primary IS NOT NULL AND (kept_primary, kept_secondary) >= ($2, $3)
      ORDER BY kept_primary, kept_secondary OFFSET 0) m
    WHERE (primary_pos, secondary_pos) < ($2, $3) AND ended = 0 LIMIT $4`,
  standing: `SELECT ${standingMatch} FROM matches
    WHERE network = $1 AND (primary_pos, secondary_pos) >= ($2, $3) AND ended = 0
    ORDER BY primary_pos, secondary_pos, pk LIMIT $4`,
  endMatches: `UPDATE matches m SET ended = 1, ended_position = u.position
    FROM unnest($1::bigint[], $2::bigint[]) u(pk, position) WHERE m.pk = u.pk`,
  deliveriesOf: `SELECT u.place, n.seq, n.sink, n.state
    FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY u(p, pk, place)
    CROSS JOIN LATERAL (SELECT d.seq, d.sink, d.state FROM deliveries d
      WHERE d.network = $1 AND d.primary_pos = u.p AND d.match_pk = u.pk AND d.kind = 'match' OFFSET 0) n
    ORDER BY u.place, n.seq`,
  letGo: `UPDATE deliveries SET state = CASE state WHEN 'pending' THEN 'cancelled' ELSE 'discarded' END,
    settled_at = $1 WHERE seq = ANY($2::bigint[])`,
  endLetters: `UPDATE deliveries SET dead_kind = 'ended' WHERE seq = ANY($1::bigint[])`,
  reviveDead: `UPDATE deliveries SET ${owedAgain}
    WHERE seq = ANY(ARRAY(SELECT d.seq FROM deliveries d ${matchOf} WHERE d.network = $1 AND d.kind = 'retracted'
      AND d.died IS NOT NULL AND (d.primary_pos, d.secondary_pos) >= ($2, $3) AND ${standsNoMore}
      ORDER BY d.primary_pos, d.secondary_pos LIMIT $4))`,
  retracted: `UPDATE invalidations SET retracted = 1 WHERE network = $1`,
  deleteInvalidation: `DELETE FROM invalidations WHERE network = $1`,
  deleteAnchorsBehind: `DELETE FROM anchors WHERE network = $1 AND primary_pos > $2`,
  deleteRecordsBehind: `DELETE FROM source_records WHERE network = $1 AND (primary_pos, secondary_pos) > ($2, $3)`,
  lowerEffective: `UPDATE monitors SET effective_primary = $2, effective_secondary = $3
    WHERE network = $1 AND (effective_primary, effective_secondary) > ($2, $3)`,
  deleteHitsBehind: `DELETE FROM gate_hits WHERE pk = ANY(ARRAY(SELECT pk FROM gate_hits
    WHERE network = $1 AND (primary_pos, secondary_pos) > ($2, $3) ORDER BY primary_pos, secondary_pos LIMIT $4))`,
  survivors: `SELECT h.pk, EXISTS (SELECT 1 FROM monitors r WHERE r.id = h.monitor AND r.match_revision = h.revision)::integer
    FROM gate_hits h WHERE h.network = $1 AND (h.kept_primary, h.kept_secondary) > ($2, $3)
    ORDER BY h.kept_primary, h.kept_secondary LIMIT $4`,
  holdHits: `UPDATE gate_hits SET consumed = 0, kept_primary = primary_pos, kept_secondary = secondary_pos
    WHERE pk = ANY($1::bigint[])`,

  deadLetter: `SELECT ${deadLetter} FROM deliveries d ${matchOf}
    WHERE d.seq = $1 AND coalesce(d.network) = $2 AND coalesce(d.died, 0) > 0`,
  retractionOwed: `SELECT 1 FROM (SELECT m.pk, coalesce(m.kept_primary, m.primary_pos) AS p FROM matches m
      WHERE m.network = $1 AND m.primary_pos = $2 AND m.secondary_pos = $3 AND m.id = $4
      ORDER BY m.life OFFSET 0) u
    CROSS JOIN LATERAL (SELECT d.sink, d.settled_at FROM deliveries d
      WHERE d.network = $1 AND d.primary_pos = u.p AND d.match_pk = u.pk AND d.kind = 'retracted' OFFSET 0) n
    WHERE n.sink = $5 AND n.settled_at IS NULL LIMIT 1`,
  letterCounts: `SELECT sink, monitor, sum(letters) FROM dead_letter_counts WHERE network = $1
    GROUP BY sink, monitor HAVING sum(letters) > 0 ORDER BY sink, monitor`,
  replayDelivered: `UPDATE deliveries SET state = 'delivered', attempts = $1, reason = NULL, settled_at = $2, died = NULL,
      dead_monitor = NULL, dead_kind = NULL
    WHERE seq = $3 AND coalesce(network) = $4 AND coalesce(died, 0) > 0`,
  replayFailed: `UPDATE deliveries SET attempts = $1, reason = $2
    WHERE seq = $3 AND coalesce(network) = $4 AND coalesce(died, 0) > 0`,
  discard: `UPDATE deliveries SET state = 'discarded', settled_at = $1, died = NULL, dead_monitor = NULL, dead_kind = NULL
    WHERE seq = ANY($2::bigint[]) AND coalesce(network) = $3 AND coalesce(died, 0) > 0`,
  unheardRetractions: `SELECT d.seq, m.monitor, m.id, m.life, d.kind, d.primary_pos, d.secondary_pos, 'pending', 0, d.slot, d.digest, m.event_time, ''
    FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink = $2 AND d.died > 0 AND d.kind = 'retracted'
    AND ${standsNoMore}
    ORDER BY d.died LIMIT $3`,
  offerRetractions: `UPDATE deliveries SET ${owedAgain} WHERE seq = ANY($1::bigint[])`,

  owed: `SELECT ${deliveryRow} FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink = $2 AND d.seq > $3 AND ${owed} ORDER BY d.seq LIMIT $4`,
  owedOfKind: `SELECT ${deliveryRow} FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink = $2 AND d.seq > $3 AND d.kind = $5 AND ${owed} ORDER BY d.seq LIMIT $4`,
  openSlots: `SELECT d.primary_pos, d.secondary_pos, count(*) FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.slot = 1 AND ${owed} GROUP BY d.primary_pos, d.secondary_pos
    ORDER BY d.primary_pos, d.secondary_pos`,
  countOwed: `SELECT count(*), coalesce(max(n.seq), 0) FROM (SELECT seq FROM deliveries
    WHERE network = $1 AND sink = $2 AND settled_at IS NULL AND seq > $3 ORDER BY seq LIMIT $4) n`,
  oldestOwed: `SELECT d.created_at FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink = $2 AND ${owed} ORDER BY d.seq LIMIT 1`,
  nextOwedSink: `SELECT d.sink FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink > $2 AND ${owed} ORDER BY d.sink LIMIT 1`,
  anchors: `SELECT primary_pos, hash FROM anchors WHERE network = $1 AND primary_pos <= $2
    ORDER BY primary_pos DESC LIMIT $3`,
  records: `SELECT record_key, value, primary_pos, secondary_pos FROM source_records
    WHERE network = $1 AND (record_key, value) > ($2, $3) ORDER BY record_key, value LIMIT $4`,

  addEvents: `WITH added AS (
      INSERT INTO blockwatcher_events (${eventColumns})
      SELECT u.id, u.type, 1, ${ENCODING}, NULL, $3::text, 0, $2::bigint, u.pk, u.match_id, u.life, 'match', $1::text, u.p, u.emission
      FROM unnest($4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::text[])
        u(id, type, pk, match_id, life, p, emission)
      RETURNING seq, type, match_id)
    INSERT INTO blockwatcher_action_deliveries (${actionDeliveryColumns})
    SELECT a.seq, u.action, a.match_id, 'waiting', 0, $2::bigint, $2::bigint
    FROM added a JOIN unnest($11::text[], $12::text[]) u(type, action) ON u.type = a.type ORDER BY a.seq`,
  retractEvents: `WITH added AS (
      INSERT INTO blockwatcher_events (${eventColumns})
      SELECT e.id || '-r', e.type, e.version, e.encoding, e.tenant, coalesce($2::text, e.traceparent), e.depth, $1::bigint, e.match_pk,
        e.match_id, e.life, 'retracted', e.network, e.primary_pos, e.emission
      FROM unnest($3::bigint[]) WITH ORDINALITY u(pk, place) JOIN matches m ON m.pk = u.pk
      CROSS JOIN LATERAL (SELECT * FROM blockwatcher_events
        WHERE match_id = m.id AND life = m.life AND kind = 'match' OFFSET 0) e
      ORDER BY u.place
      RETURNING seq, match_id, life)
    INSERT INTO blockwatcher_action_deliveries (${actionDeliveryColumns})
    SELECT a.seq, d.action, a.match_id, 'waiting', 0, $1::bigint, $1::bigint
    FROM added a CROSS JOIN LATERAL (SELECT e.seq FROM blockwatcher_events e
      WHERE e.match_id = a.match_id AND e.life = a.life AND e.kind = 'match' OFFSET 0) e
    JOIN blockwatcher_action_deliveries d ON d.event_seq = e.seq ORDER BY a.seq, d.pk`,
  owedToActions: `SELECT ${actionRow} FROM deliveries d ${matchOf}
    WHERE d.network = $1 AND d.sink = '${ACTIONS}' AND ${owed} ORDER BY d.seq LIMIT $2`,
  letterToActions: `SELECT ${actionRow} FROM deliveries d ${matchOf}
    WHERE d.seq = $1 AND coalesce(d.network) = $2 AND coalesce(d.sink) = '${ACTIONS}' AND coalesce(d.died, 0) > 0 AND m.ended = 0`,
  emitted: `UPDATE deliveries SET state = 'delivered', settled_at = $1 WHERE seq = ANY($2::bigint[])`,
  matchState: `SELECT m.ended, e.life FROM blockwatcher_events e JOIN matches m ON m.pk = e.match_pk
    WHERE e.match_id = $1 ORDER BY e.life DESC LIMIT 1`,

  feedMatches: `SELECT ${matchItem} FROM matches
    WHERE network = $1 AND position > $2 AND position <= $3 AND ended <= $4 ORDER BY position LIMIT $5`,
  feedMatchesOf: `SELECT ${matchItem} FROM matches
    WHERE network = $1 AND monitor = $6 AND position > $2 AND position <= $3 AND ended <= $4 ORDER BY position LIMIT $5`,
  feedRetracted: `SELECT ${retractedItem} FROM matches
    WHERE network = $1 AND ended_position > $2 AND ended_position <= $3 ORDER BY ended_position LIMIT $4`,
  feedRetractedOf: `SELECT ${retractedItem} FROM matches
    WHERE network = $1 AND monitor = $5 AND ended_position > $2 AND ended_position <= $3 ORDER BY ended_position LIMIT $4`,
  feedState: `SELECT network, feed_position FROM pipelines WHERE network = $1 AND deleted = 0`,
  feedStates: `SELECT network, feed_position FROM pipelines WHERE deleted = 0 ORDER BY network`,
  trims: `SELECT network, monitor, kind, position FROM feed_trims WHERE network = ANY($1::text[])`,

  sweep: `SELECT primary_pos, match_pk, seq, (state IN ('delivered', 'cancelled', 'discarded'))::integer FROM deliveries
    WHERE network = $1 AND primary_pos < $2 AND (primary_pos, match_pk, seq) > ($3, $4, $5)
    ORDER BY primary_pos, match_pk, seq LIMIT $6`,
  newestHit: `SELECT event_time FROM gate_hits WHERE network = $1 ORDER BY event_time DESC LIMIT 1`,
  sweepHits: `SELECT kept_primary, kept_secondary, pk, (event_time + window_ms < $7)::integer FROM gate_hits
    WHERE network = $1 AND kept_primary < $2 AND (kept_primary, kept_secondary, pk) > ($3, $4, $5)
    ORDER BY kept_primary, kept_secondary, pk LIMIT $6`,
  deleteHits: `DELETE FROM gate_hits WHERE pk = ANY($1::bigint[])`,
  deleteDeliveries: `DELETE FROM deliveries WHERE seq = ANY($1::bigint[])`,
  deleteMatches: `DELETE FROM matches m WHERE m.pk = ANY($1::bigint[])
    AND coalesce(m.position, m.ended_position) IS NULL
    AND NOT EXISTS (SELECT 1 FROM deliveries d
      WHERE d.network = m.network AND d.primary_pos = coalesce(m.kept_primary, m.primary_pos) AND d.match_pk = m.pk)
    AND NOT EXISTS (SELECT 1 FROM blockwatcher_events e WHERE e.match_id = m.id AND e.life = m.life)`,
  sweepEvents: `SELECT e.created_at, e.seq, e.match_pk, (e.primary_pos < $7 AND (
      SELECT 1 FROM blockwatcher_action_deliveries d WHERE d.event_seq = e.seq AND coalesce(d.settled_at, $2) >= $2 LIMIT 1) IS NULL)::integer
    FROM blockwatcher_events e
    WHERE e.network = $1 AND e.created_at < $2 AND (e.created_at, e.seq, e.match_pk) > ($3, $4, $5)
    ORDER BY e.created_at, e.seq LIMIT $6`,
  deleteActionDeliveries: `DELETE FROM blockwatcher_action_deliveries WHERE event_seq = ANY($1::bigint[])`,
  deleteEvents: `DELETE FROM blockwatcher_events WHERE seq = ANY($1::bigint[])`,
  oldestMatches: `SELECT pk, position, monitor, coalesce(kept_primary, primary_pos) FROM matches
    WHERE network = $1 AND position > 0 AND position <= $2 ORDER BY position LIMIT $3`,
  oldestRetracted: `SELECT pk, ended_position, monitor, coalesce(kept_primary, primary_pos) FROM matches
    WHERE network = $1 AND ended_position > 0 AND ended_position <= $2 ORDER BY ended_position LIMIT $3`,
  trimMatches: `UPDATE matches SET position = NULL WHERE pk = ANY($1::bigint[])`,
  trimRetracted: `UPDATE matches SET ended_position = NULL WHERE pk = ANY($1::bigint[])`,
  putTrims: `INSERT INTO feed_trims AS t (network, monitor, kind, position)
    SELECT $1, u.monitor, $2, u.position FROM unnest($3::text[], $4::bigint[]) u(monitor, position)
    ON CONFLICT (network, monitor, kind) DO UPDATE SET position = greatest(t.position, excluded.position)`,
  newestAnchor: `SELECT primary_pos FROM anchors WHERE network = $1 AND primary_pos <= $2
    ORDER BY primary_pos DESC LIMIT 1`,
  deleteAnchors: `DELETE FROM anchors WHERE network = $1 AND primary_pos = ANY(ARRAY(
    SELECT primary_pos FROM anchors WHERE network = $1 AND primary_pos < $2 ORDER BY primary_pos LIMIT $3))`,
} as const

/** Dead letters behind one in the order of dying. Parameters: limit, after, and those of the filter. */
export const deadLettersSql = (parts: LetterParts): string => lettersSql(parts, deadLetter, matchOf)

/** How many of the next letters there are, and the place of the last. Parameters: limit, after, those of the filter, up to. */
export const lettersBetweenSql = (parts: LetterParts): string =>
  `SELECT count(*), coalesce(max(n.died), 0)
    FROM (${lettersSql(parts, "d.died", "", "up to")}) n`

/** How many dead letters there are, as the triggers count them: any of network, sink and monitor, in this order. */
export const deadLetterCountSql = (
  by: { readonly network: boolean; readonly sink: boolean; readonly monitor: boolean },
  kinds = letterKinds,
): string => {
  const where = (["network", "sink", "monitor"] as const)
    .filter((name) => by[name])
    .map((name, i) => ` AND ${name} = $${i + 1}`)
  return `SELECT coalesce(sum(letters), 0) FROM dead_letter_counts
    WHERE kind = ANY('{${kinds.join(",")}}')${where.join("")}`
}

/** How many rows are owed, by any of network, sink and monitor, in this order of parameters. */
export const owedCountSql = (by: {
  readonly network: boolean
  readonly sink: boolean
  readonly monitor: boolean
}): string => {
  let last = 0
  const next = () => `$${++last}`
  const network = by.network ? `WHERE p.network = ${next()}` : ""
  const sink = by.sink ? `AND d.sink = ${next()}` : ""
  const monitor = by.monitor ? `AND m.monitor = ${next()}` : ""
  return `SELECT coalesce(sum(n.rows), 0) FROM pipelines p
    CROSS JOIN LATERAL (SELECT count(*) AS rows FROM deliveries d ${matchOf}
      WHERE d.network = p.network AND ${owed} ${sink} ${monitor}) n ${network}`
}

/** How many deliveries of matches to actions are not over, by network or the type of their event, in this order of parameters. */
export const openActionsSql = (by: { readonly network: boolean; readonly type: boolean }): string =>
  `SELECT count(*) FROM (SELECT event_seq FROM blockwatcher_action_deliveries
      WHERE state IN ('waiting', 'running', 'parked') OFFSET 0) d
    CROSS JOIN LATERAL (SELECT network, type FROM blockwatcher_events WHERE seq = d.event_seq OFFSET 0) e
    WHERE e.network ${by.network ? "= $1" : "IS NOT NULL"}${by.type ? ` AND e.type = $${by.network ? 2 : 1}` : ""}`
