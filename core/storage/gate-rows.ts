import type { EntityManager } from "@mikro-orm/core"
import { setImmediate } from "node:timers/promises"
import { GateHitEntity } from "./entities/rows.ts"

/** How many rows a statement touches: on SQLite nothing else runs meanwhile. */
const CHUNK = 1000

/** The revision of hits whose monitor has had another since; the first in the order of the index. */
const NONE = ""

/** Takes up what a monitor's gate recorded, some rows at a time; each must be gone from what is found next. */
const inChunks = async (
  em: EntityManager,
  found: { readonly monitor: string; readonly revision?: { readonly $gt: string } },
  take: (hits: ReadonlyArray<{ readonly pk: number; readonly consumed: number }>) => Promise<unknown>,
): Promise<void> => {
  while (true) {
    const hits = await em.find(GateHitEntity, found, {
      fields: ["pk", "consumed"],
      limit: CHUNK,
      disableIdentityMap: true,
    })
    await take(hits)
    if (hits.length < CHUNK) return
    await setImmediate()
  }
}

const pks = (hits: ReadonlyArray<{ readonly pk: number }>) => ({ pk: { $in: hits.map(({ pk }) => pk) } })

/** Removes all that the gate of a deleted monitor recorded. */
export const removeHits = (em: EntityManager, monitor: string): Promise<void> =>
  inChunks(em, { monitor }, (hits) => em.nativeDelete(GateHitEntity, pks(hits)))

/**
 * Lets a monitor's gate begin anew: what is held is removed. What was consumed, or opened a window, counts no more, also when
 * the revision is put back; its rows stay for as long as a fork may cut the emission that it was part of.
 */
export const dropHits = (em: EntityManager, monitor: string): Promise<void> =>
  inChunks(em, { monitor, revision: { $gt: NONE } }, async (hits) => {
    await em.nativeDelete(GateHitEntity, pks(hits.filter(({ consumed }) => consumed === 0)))
    await em.nativeUpdate(GateHitEntity, pks(hits.filter(({ consumed }) => consumed !== 0)), { revision: NONE })
  })
