import { Effect } from "effect"
import type { Cursor } from "../../model/cursor.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

/**
 * What taking back does to gates: hits behind a point are removed, and survivors of emissions that it cut are held again, if
 * they are of their monitor's present revision. Touches up to `limit` rows; answers how many.
 */
export const cutGates = Effect.fnUntraced(function* (
  { session, network }: Group,
  { primary, secondary }: Cursor,
  limit: number,
): Effect.fn.Return<number, QueryFailed> {
  const removed = yield* session.run(sql.deleteHitsBehind, [network.id, primary, secondary, limit])
  if (removed === limit) return removed
  const survivors = yield* session.all<readonly [pk: number, present: number]>(sql.survivors, [
    network.id,
    primary,
    secondary,
    limit - removed,
  ])
  const of = (wanted: 0 | 1) => survivors.flatMap(([pk, present]) => (present === wanted ? [pk] : []))
  const [foreign, held] = [of(0), of(1)]
  if (foreign.length > 0) yield* session.run(sql.deleteHits, [foreign])
  if (held.length > 0) yield* session.run(sql.holdHits, [held])
  return removed + survivors.length
})
