import { type AnyEntity, type EntityManager, type EntityMetadata, Reference, Utils, wrap } from "@mikro-orm/core"
import { TenantViolation } from "./refused.ts"

/** To whose entities a run is limited. */
export interface TenantLimit {
  readonly tenant: string
  /** The property that names it; an entity without this property belongs to nobody. */
  readonly property: string
}

/** Whether entities of a kind belong to tenants. */
export const isOwned = (meta: EntityMetadata<any>, { property }: TenantLimit): boolean =>
  meta.properties[property] !== undefined

/** Whom an entity belongs to, as far as that was read or set. */
export const tenantOf = (entity: AnyEntity, { property }: TenantLimit): string | undefined => {
  const value: unknown = Reference.unwrapReference((entity as { readonly [name: string]: any })[property])
  const key: unknown = Utils.isEntity(value, true) ? (wrap(value, true).getPrimaryKey() as unknown) : value
  return key === undefined || key === null ? undefined : String(key)
}

/** Refuses an entity of another tenant that came in past the conditions of queries. */
export const checkLoaded = (meta: EntityMetadata<any>, entity: AnyEntity, limit: TenantLimit): void => {
  if (!isOwned(meta, limit)) return
  const own = tenantOf(entity, limit)
  if (own !== undefined && own !== limit.tenant) {
    throw new TenantViolation({
      entity: meta.className,
      tenant: limit.tenant,
      reason: "one of another tenant was read",
    })
  }
}

interface Filtering {
  applyFilters(entity: any, where: object, options: any, type: any, findOptions?: any): Promise<object | undefined>
}

/** Puts the tenant into the condition of every query, also when the program switches its filters off. */
export const limitReads = (em: EntityManager, limit: TenantLimit): void => {
  const filtering = em as unknown as Filtering
  const applyFilters = filtering.applyFilters.bind(em)
  filtering.applyFilters = async (entity, where, options, type, findOptions) => {
    const condition = await applyFilters(entity, where, options, type, findOptions)
    if (!isOwned(em.getMetadata().get(entity), limit)) return condition
    const own = { [limit.property]: limit.tenant }
    return condition === undefined || Reflect.ownKeys(condition).length === 0 ? own : { $and: [own, condition] }
  }
}
