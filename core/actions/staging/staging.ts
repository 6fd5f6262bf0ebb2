import { type EntityManager, FlushMode } from "@mikro-orm/core"
import type { Session } from "../store/session.ts"
import type { Store } from "../store/store.ts"
import { checkFlush } from "./check-flush.ts"
import { StagingRefused } from "./refused.ts"
import { checkLoaded, limitReads, type TenantLimit } from "./tenant.ts"

/** The writes of one run: gathered while it runs, and written after it. */
export interface Staging {
  /** What the action works with. */
  readonly em: EntityManager
  /**
   * Writes what was gathered, in the session's transaction; answers whether there was anything. Throws when an entity was
   * changed by someone else, or is not the tenant's. A staging is of no use after that.
   */
  readonly flush: (session: Session) => Promise<boolean>
}

const AT_THE_END = "what an action persists, changes or removes is written by itself when it has succeeded"

/** What an action may not do with its EntityManager, and why. */
const refused: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["flush", "transactional", "begin", "commit", "rollback", "setTransactionContext"].map((name) => [
      name,
      `${AT_THE_END}, in one transaction that is open only then: leave em.${name} out`,
    ]),
  ),
  ...Object.fromEntries(
    ["insert", "insertMany", "upsert", "upsertMany", "nativeUpdate", "nativeDelete", "clone", "callRoutine"].map(
      (name) => [name, `em.${name} writes at once, and ${AT_THE_END}: use em.create, em.persist or em.remove`],
    ),
  ),
  ...Object.fromEntries(
    ["execute", "createQueryBuilder", "qb", "getKysely", "getConnection", "getDriver"].map((name) => [
      name,
      `em.${name} reaches past what an action may see and past its last transaction: use em.find, em.count and the like`,
    ]),
  ),
}

const OF_A_FORK = "a fork is for reading, what is changed in it is not written: use the EntityManager of the action"

const refuseFork = (): never => {
  throw new StagingRefused({ reason: OF_A_FORK })
}

type Phase = { name: "running" | "writing" }

type Methods = Readonly<Record<string, (...args: ReadonlyArray<any>) => any>>

/** Lets an EntityManager refuse what an action may not do, until it is written. Internal calls go the same way. */
const guard = (em: EntityManager, phase: Phase, limit: TenantLimit | null): void => {
  const original = em as unknown as Methods
  const overrides: { [name: string]: (...args: ReadonlyArray<any>) => unknown } = {}
  for (const [name, reason] of Object.entries(refused)) {
    const call = original[name]?.bind(em)
    if (call === undefined) continue
    overrides[name] = (...args) => {
      if (phase.name === "running") throw new StagingRefused({ reason })
      return call(...args)
    }
  }
  const fork = em.fork.bind(em)
  overrides["fork"] = (options?: Parameters<typeof fork>[0]) => {
    const forked = fork(options)
    guard(forked, phase, limit)
    return Object.assign(forked, { persist: refuseFork, remove: refuseFork })
  }
  const connection = em.getConnection.bind(em)
  const withSessionContext = original["withSessionContext"]!.bind(em)
  overrides["withSessionContext"] = (context, work, on) => withSessionContext(context, work, on ?? connection("write"))
  if ("countBy" in em) {
    // Its query builder is its own.
    overrides["countBy"] = (...args) => {
      const reader = fork({ keepTransactionContext: true })
      if (limit !== null) limitReads(reader, limit)
      return (reader as unknown as Methods)["countBy"]!(...args)
    }
  }
  if (limit !== null) limitReads(em, limit)
  Object.assign(em, overrides)
}

/** Makes the EntityManager of a run, which sees what is the tenant's; everything if there is none. */
export const stage = (store: Store, tenant: string | null): Staging => {
  const phase: Phase = { name: "running" }
  const limit = tenant === null ? null : { tenant, property: store.tenantProperty }
  const em = store.orm.em.fork({ flushMode: FlushMode.COMMIT, cloneEventManager: true })
  let changed = false
  em.getEventManager().registerSubscriber({
    onLoad: ({ meta, entity }) => {
      if (limit !== null) checkLoaded(meta, entity, limit)
    },
    onFlush: async ({ em: flushing, uow }) => {
      // However it was brought about.
      if (phase.name === "running") throw new StagingRefused({ reason: refused["flush"]! })
      changed ||= uow.getChangeSets().length + uow.getCollectionUpdates().length + uow.getExtraUpdates().size > 0
      await checkFlush(flushing, uow, limit, store.database, () => {
        const reader = store.orm.em.fork({ flushMode: FlushMode.COMMIT })
        reader.setTransactionContext(flushing.getTransactionContext())
        return reader
      })
    },
  })
  guard(em, phase, limit)
  return {
    em,
    flush: async ({ on }) => {
      phase.name = "writing"
      em.setTransactionContext(on)
      await em.flush()
      return changed
    },
  }
}
