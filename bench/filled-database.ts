import type { Native } from "../core/storage/sqlite/native.ts"

/** A database with many rows, and how to name them: row `n` has the keys, the primary and the position `n`. */
export interface Filled {
  readonly network: string
  readonly sink: string
  readonly newest: number
  readonly monitor: (n: number) => string
  readonly id: (n: number) => string
}

const GROUP = 10_000
const OWED = 100
const DEAD = 100
const ANCHORS = 1_000

const monitor = (n: number) => `monitor-${n % 10}`

const id = (n: number) => n.toString(16).padStart(64, "0")

/** Fills an empty database with one delivery and one hit a match: the newest are owed, some are dead, the rest is delivered. */
export const fill = (native: Native, rows: number): Filled => {
  const match = native.prepare(`INSERT INTO matches
    (pk, id, life, network, monitor, revision, primary_pos, secondary_pos, event_time, position, late, ended, payload)
    VALUES (?, ?, 1, 'net', ?, 'r', ?, 0, ?, ?, 0, 0, ?)`)
  const delivery = native.prepare(`INSERT INTO deliveries
    (seq, network, sink, match_pk, kind, primary_pos, secondary_pos, state, attempts, slot, created_at, settled_at, died, dead_monitor, dead_kind, reason)
    VALUES (?, 'net', 'sink', ?, 'match', ?, 0, ?, 1, 1, 1, ?, ?, ?, ?, ?)`)
  const hit =
    native.prepare(`INSERT INTO gate_hits (pk, network, monitor, revision, gate_key, id, primary_pos, secondary_pos,
    event_time, window_ms, consumed, kept_primary, kept_secondary, payload)
    VALUES (?, 'net', ?, 'r', '', ?, ?, 0, ?, 1000, 0, ?, 0, ?)`)
  const anchor = native.prepare(`INSERT INTO anchors (network, primary_pos, hash) VALUES ('net', ?, ?)`)
  const payload = "x".repeat(300)
  for (let start = 1; start <= rows; start += GROUP) {
    native.exec("BEGIN IMMEDIATE")
    for (let n = start; n < Math.min(start + GROUP, rows + 1); n++) {
      hit.run(n, monitor(n), id(n), n, n, n, "x")
      match.run(n, id(n), monitor(n), n, n, n, payload)
      if (n > rows - OWED) delivery.run(n, n, n, "pending", null, null, null, null, null)
      else if (n % Math.floor(rows / DEAD) === 0) delivery.run(n, n, n, "dead", 1, n, monitor(n), "match", "transient")
      else delivery.run(n, n, n, "delivered", 1, null, null, null, null)
      if (n > rows - ANCHORS) anchor.run(n, id(n))
    }
    native.exec("COMMIT")
  }
  native.exec(`INSERT INTO pipelines (network, epoch, minted_primary, minted_secondary, checkpoint_primary,
    checkpoint_secondary, feed_position) VALUES ('net', 1, ${rows}, 0, ${rows - OWED}, 0, ${rows})`)
  native.exec("PRAGMA wal_checkpoint(TRUNCATE)")
  return { network: "net", sink: "sink", newest: rows, monitor, id }
}
