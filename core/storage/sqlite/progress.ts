import type { Cursor } from "../../model/cursor.ts"
import type { Outcome, Owner } from "../storage.ts"
import type { Group, NetworkRow } from "./group.ts"
import type { Native } from "./native.ts"
import { sql } from "./sql.ts"

/** Takes a network over: its next epoch. A deleted network begins anew. */
export const claim = (group: Group, id: string): Owner => {
  const network = group.networkOrNew(id)
  network.epoch++
  network.deleted = false
  network.dirty = true
  return { network: id, epoch: network.epoch }
}

/** Stores the resolved start, unless there is one. */
export const begin = (network: NetworkRow, start: Cursor, now: number): void => {
  if (network.minted !== null) return
  network.advanceMinted(start)
  network.advanceCheckpoint(start, now)
}

/** Prepares the writing of outcomes and offers. */
export const makeSettle = (native: Native) => {
  const delivered = native.prepare(sql.delivered)
  const dead = native.prepare(sql.dead)
  const offered = native.prepare(sql.offered)

  return (
    group: Group,
    network: NetworkRow,
    input: { readonly outcomes: ReadonlyArray<Outcome>; readonly offered: ReadonlyArray<number> },
    now: number,
  ): void => {
    for (const { seq, state, attempts, reason } of input.outcomes) {
      if (state === "delivered") delivered.run(attempts, reason, now, seq, network.id)
      else dead.run(attempts, reason, now, group.take("died", 1), seq, network.id)
    }
    for (const seq of input.offered) offered.run(seq, network.id)
  }
}
