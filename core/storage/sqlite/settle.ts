import type { NetworkRow } from "../network-row.ts"
import type { Storage } from "../storage.ts"
import type { Group } from "./group.ts"
import type { Native } from "./native.ts"
import { sql } from "./sql.ts"

/** Prepares the writing of outcomes and offers. */
export const makeSettle = (native: Native) => {
  const delivered = native.prepare(sql.delivered)
  const dead = native.prepare(sql.dead)
  const offered = native.prepare(sql.offered)
  const offeredAs = native.prepare(sql.offeredAs)
  const tried = native.prepare(sql.tried)

  return (group: Group, network: NetworkRow, input: Parameters<Storage["Service"]["settle"]>[1], now: number): void => {
    for (const { seq, state, attempts, reason } of input.outcomes) {
      if (state === "delivered") delivered.run(attempts, reason, now, seq, network.id)
      else dead.run(attempts, reason, now, group.take("died", 1), seq, network.id)
    }
    for (const seq of input.offered) offered.run(seq, network.id)
    for (const { digest, seqs } of input.digests ?? []) {
      for (const seq of seqs) offeredAs.run(digest, seq, network.id)
    }
    for (const { seq, attempts } of input.tried ?? []) tried.run(attempts, seq, network.id)
  }
}
