import {
  type AnyEntity,
  ChangeSetType,
  type EntityManager,
  type EntityMetadata,
  LockMode,
  OptimisticLockError,
  Reference,
  ReferenceKind,
  type UnitOfWork,
  Utils,
  wrap,
} from "@mikro-orm/core"
import { StagingRefused, TenantViolation } from "./refused.ts"
import { isOwned, type TenantLimit, tenantOf } from "./tenant.ts"

type ChangeSet = ReturnType<UnitOfWork["getChangeSets"]>[number]

const isCreated = ({ type }: ChangeSet): boolean => type === ChangeSetType.CREATE
const isRemoved = ({ type }: ChangeSet): boolean => type === ChangeSetType.DELETE || type === ChangeSetType.DELETE_EARLY

/**
 * Checks what is about to be written, in its transaction: that nobody else changed what is changed or removed, and that
 * all of it, and all that it refers to, is the tenant's. New entities get the tenant.
 *
 * @param openReader opens what reads in the same transaction, and sees every tenant
 */
export const checkFlush = async (
  em: EntityManager,
  uow: UnitOfWork,
  limit: TenantLimit | null,
  database: "sqlite" | "postgres",
  openReader: () => EntityManager,
): Promise<void> => {
  const changes = uow.getChangeSets()
  requireVersions(changes)
  const removed = changes.filter(isRemoved)
  if (removed.length > 0) await checkRemoved(removed, openReader(), database)
  if (limit === null) return
  fillIn(changes.filter(isCreated), em, uow, limit)
  const own = new Kinds()
  for (const change of changes) {
    if (isOwned(change.meta, limit)) checkTenant(change, limit)
    if (!isCreated(change)) own.add(change.meta, change.entity, limit)
  }
  const created = new Set(changes.filter(isCreated).map(({ entity }) => entity))
  for (const target of targets(changes, em, uow)) {
    if (typeof target.value === "object" && created.has(target.value)) continue
    own.add(target.meta, target.value, limit)
  }
  await own.check(openReader(), limit)
}

/** MikroORM sees by the version alone that someone else changed an entity since it was read. */
const requireVersions = (changes: ReadonlyArray<ChangeSet>): void => {
  for (const change of changes) {
    const { meta, entity } = change
    if (isCreated(change) || isRemoved(change)) continue
    if (meta.versionProperty !== undefined || meta.concurrencyCheckKeys.size > 0) continue
    // One that was never read is written whatever it was.
    if (!wrap(entity).isInitialized()) continue
    throw new StagingRefused({
      reason:
        `entity ${meta.className} was changed and has no version property, so that a change which someone else made ` +
        "since it was read would be lost: give it one (p.integer().version())",
    })
  }
}

/** MikroORM removes whatever version is there. */
const checkRemoved = async (
  removed: ReadonlyArray<ChangeSet>,
  reader: EntityManager,
  database: "sqlite" | "postgres",
): Promise<void> => {
  for (const { meta, entity } of removed) {
    const version = meta.versionProperty as string | undefined
    const seen = version === undefined ? undefined : (entity as { readonly [name: string]: any })[version]
    if (version === undefined || seen === undefined) continue
    const found = await reader.find(
      meta.class,
      { ...keyOf(meta, entity), [version]: seen },
      { filters: false, ...(database === "postgres" ? { lockMode: LockMode.PESSIMISTIC_WRITE } : {}) },
    )
    if (found.length === 0) throw OptimisticLockError.lockFailed(entity)
  }
}

const fillIn = (created: ReadonlyArray<ChangeSet>, em: EntityManager, uow: UnitOfWork, limit: TenantLimit): void => {
  for (const { meta, entity } of created) {
    const property = meta.properties[limit.property as never] as EntityMetadata["props"][number] | undefined
    if (property === undefined || tenantOf(entity, limit) !== undefined) continue
    const tenant =
      property.kind === ReferenceKind.SCALAR
        ? limit.tenant
        : em.getReference(property.targetMeta!.class, limit.tenant as never)
    Object.assign(entity, { [limit.property]: tenant })
    uow.recomputeSingleChangeSet(entity)
  }
}

const checkTenant = ({ meta, entity }: ChangeSet, limit: TenantLimit): void => {
  const own = tenantOf(entity, limit)
  if (own === undefined || own === limit.tenant) return
  const reason = "it was to be written as another tenant's"
  throw new TenantViolation({ entity: meta.className, tenant: limit.tenant, reason })
}

interface Target {
  readonly meta: EntityMetadata<any>
  /** The entity, or its key. */
  readonly value: any
}

/** What the changes refer to. */
const targets = function* (changes: ReadonlyArray<ChangeSet>, em: EntityManager, uow: UnitOfWork): Generator<Target> {
  const target = (value: AnyEntity): Target => ({ meta: em.getMetadata().get(value.constructor as never), value })
  for (const change of changes) {
    if (isRemoved(change)) continue
    for (const { name, kind, targetMeta } of change.meta.relations) {
      if (kind !== ReferenceKind.MANY_TO_ONE && kind !== ReferenceKind.ONE_TO_ONE) continue
      if (targetMeta === undefined || (change.payload as { readonly [name: string]: unknown })[name] == null) continue
      const value: unknown = Reference.unwrapReference((change.entity as { readonly [name: string]: any })[name])
      if (value != null) yield { meta: targetMeta, value }
    }
  }
  for (const collection of uow.getCollectionUpdates()) {
    yield target(collection.owner)
    for (const item of collection.getItems(false)) yield target(item)
  }
}

const keyOf = (meta: EntityMetadata<any>, value: AnyEntity): object => {
  return Object.fromEntries(
    meta.primaryKeys.map((key) => [key, (value as { readonly [name: string]: any })[key as string]]),
  )
}

/** Entities that exist, by their kind, of which each must be the tenant's. */
class Kinds {
  readonly #keys = new Map<EntityMetadata<any>, Map<string, object>>()

  add(meta: EntityMetadata<any>, value: any, limit: TenantLimit): void {
    if (!isOwned(meta, limit)) return
    const key = Utils.isEntity(value, true)
      ? keyOf(meta, value as AnyEntity)
      : { [meta.primaryKeys[0] as string]: value }
    const keys = this.#keys.get(meta) ?? new Map<string, object>()
    keys.set(JSON.stringify(Object.values(key).map(String)), key)
    this.#keys.set(meta, keys)
  }

  async check(reader: EntityManager, limit: TenantLimit): Promise<void> {
    for (const [meta, keys] of this.#keys) {
      const all = { $or: [...keys.values()] }
      const own = { $and: [{ [limit.property]: limit.tenant }, all] }
      if ((await reader.count(meta.class, own, { filters: false })) === keys.size) continue
      // What is there no more was removed by someone else: then the run runs again.
      if ((await reader.count(meta.class, all, { filters: false })) < keys.size) {
        throw new OptimisticLockError(`an entity ${meta.className} that was read is there no more`)
      }
      const reason = "one of another tenant was to be changed, removed or referred to"
      throw new TenantViolation({ entity: meta.className, tenant: limit.tenant, reason })
    }
  }
}
