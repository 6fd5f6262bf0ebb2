import type { Cursor } from "../../model/cursor.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

/**
 * Prepares what taking back does to gates: hits behind a point are removed, and survivors of emissions that it cut are held
 * again, if they are of their monitor's present revision. Touches up to `limit` rows; answers how many.
 */
export const makeCutGates = (native: Native) => {
  const deleteBehind = native.prepare(sql.deleteHitsBehind)
  const survivors = rows<readonly [pk: number, present: number]>(native, sql.survivors)
  const deleteHit = native.prepare(sql.deleteHit)
  const holdHit = native.prepare(sql.holdHit)

  return (network: string, { primary, secondary }: Cursor, limit: number): number => {
    const removed = deleteBehind.run(network, primary, secondary, limit).changes
    const cut = removed === limit ? [] : survivors.all(network, primary, secondary, limit - removed)
    for (const [pk, present] of cut) (present === 1 ? holdHit : deleteHit).run(pk)
    return removed + cut.length
  }
}
