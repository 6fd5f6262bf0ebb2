import type { EntityManager, LockMode } from "@mikro-orm/core"
import { Effect, Result, Schema } from "effect"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import { MonitorEntity, NetworkEntity, SeedEntity, SinkEntity } from "./entities/resources.ts"
import { CounterEntity } from "./entities/rows.ts"
import { StaleResources, StorageError } from "./error.ts"
import type { ResourceChanges, ResourceKind, SeedRecord, Stored, StoredMonitor, StoredResources } from "./storage.ts"

/** The transactions of a database. */
export interface Transactions<Manager extends EntityManager> {
  /** Reads that all see one moment. */
  readonly snapshot: <A>(operation: string, work: (em: Manager) => Promise<A>) => Effect.Effect<A, StorageError>
  readonly unit: <A>(operation: string, work: (em: Manager) => Promise<A>) => Effect.Effect<A, StorageError>
}

/** What a change of resources does to the rows of pipelines, in the way of a database. */
export interface RowChanges<Manager extends EntityManager> {
  /** Reads the version; other changes wait from then on. */
  readonly lockVersion: (em: Manager) => Promise<number>
  /** Keeps out the writers that the changes concern, and lets go of the rows that they discard. */
  readonly release: (em: Manager, changes: ResourceChanges, now: number) => Promise<void>
  /** Removes every row keyed by a network. */
  readonly removeNetwork: (em: Manager, network: string) => Promise<void>
}

interface ResourceRow {
  readonly id: string
  readonly definition: string
  readonly revision: string
}

const networkDefinition = Schema.decodeUnknownEffect(Schema.fromJsonString(NetworkDefinition))
const monitorDefinition = Schema.decodeUnknownEffect(Schema.fromJsonString(MonitorDefinition))
const sinkDefinition = Schema.decodeUnknownEffect(Schema.fromJsonString(SinkDefinition))

const decode = <D>(
  kind: ResourceKind,
  read: (text: string) => Effect.Effect<D, Schema.SchemaError>,
  { id, definition, revision }: ResourceRow,
): Effect.Effect<Stored<D>, StorageError> =>
  read(definition).pipe(
    Effect.map((decoded) => ({ definition: decoded, revision })),
    Effect.mapError(
      (error) =>
        new StorageError({
          operation: "resources",
          reason: `the stored ${kind} '${id}' cannot be read: ${error.message}; put it again or delete it`,
          retryable: false,
        }),
    ),
  )

/** The counter that holds the version of all resources. */
export const RESOURCES = "resources"

export const versionIn = async (em: EntityManager, options: { readonly lockMode?: LockMode } = {}): Promise<number> =>
  (await em.findOneOrFail(CounterEntity, { name: RESOURCES }, options)).value

/** Writes a set of changes, in the present transaction. */
const apply = async <Manager extends EntityManager>(
  em: Manager,
  { release, removeNetwork }: RowChanges<Manager>,
  changes: ResourceChanges,
  now: number,
): Promise<void> => {
  await release(em, changes, now)
  for (const id of changes.deleteMonitors ?? []) await em.nativeDelete(MonitorEntity, { id })
  for (const id of changes.deleteSinks ?? []) await em.nativeDelete(SinkEntity, { id })
  for (const id of changes.deleteNetworks ?? []) {
    await removeNetwork(em, id)
    await em.nativeDelete(NetworkEntity, { id })
  }
  for (const { definition, revision } of changes.putNetworks ?? []) {
    await em.upsert(NetworkEntity, { id: definition.id, definition: JSON.stringify(definition), revision })
  }
  for (const { definition, revision } of changes.putSinks ?? []) {
    await em.upsert(SinkEntity, { id: definition.id, definition: JSON.stringify(definition), revision })
  }
  for (const { definition, revision, matchRevision, effectiveFrom } of changes.putMonitors ?? []) {
    // A batch that was minted since the change was made may have recorded it.
    const recorded =
      effectiveFrom === null && definition.enabled
        ? await em.findOne(MonitorEntity, { id: definition.id, matchRevision })
        : null
    await em.upsert(MonitorEntity, {
      id: definition.id,
      network: definition.network,
      definition: JSON.stringify(definition),
      revision,
      matchRevision,
      effectivePrimary: effectiveFrom?.primary ?? recorded?.effectivePrimary ?? null,
      effectiveSecondary: effectiveFrom?.secondary ?? recorded?.effectiveSecondary ?? null,
    })
  }
  for (const seed of changes.seeds ?? []) await em.upsert(SeedEntity, { ...seed })
}

/** The resources, read and changed through MikroORM. */
export const makeResources = <Manager extends EntityManager>(
  { snapshot, unit }: Transactions<Manager>,
  rows: RowChanges<Manager>,
) => {
  const read: Effect.Effect<StoredResources, StorageError> = Effect.gen(function* () {
    const stored = yield* snapshot("resources", async (em) => ({
      networks: await em.find(NetworkEntity, {}, { orderBy: { id: "asc" } }),
      monitors: await em.find(MonitorEntity, {}, { orderBy: { id: "asc" } }),
      sinks: await em.find(SinkEntity, {}, { orderBy: { id: "asc" } }),
      version: await versionIn(em),
    }))
    return {
      version: stored.version,
      networks: yield* Effect.forEach(stored.networks, (row) => decode("network", networkDefinition, row)),
      monitors: yield* Effect.forEach(stored.monitors, (row) =>
        decode("monitor", monitorDefinition, row).pipe(
          Effect.map((monitor): StoredMonitor => ({
            ...monitor,
            matchRevision: row.matchRevision,
            effectiveFrom:
              row.effectivePrimary == null || row.effectiveSecondary == null
                ? null
                : { primary: row.effectivePrimary, secondary: row.effectiveSecondary },
          })),
        ),
      ),
      sinks: yield* Effect.forEach(stored.sinks, (row) => decode("sink", sinkDefinition, row)),
    }
  })

  const seeds: Effect.Effect<ReadonlyArray<SeedRecord>, StorageError> = snapshot("seeds", (em) =>
    em.find(SeedEntity, {}, { orderBy: { kind: "asc", id: "asc" } }),
  ).pipe(
    Effect.map((found) => found.map(({ kind, id, path, hash }) => ({ kind: kind as ResourceKind, id, path, hash }))),
  )

  return {
    read,
    seeds,
    change: (changes: ResourceChanges, now: number): Effect.Effect<number, StorageError | StaleResources> =>
      unit("change", async (em) => {
        const present = await rows.lockVersion(em)
        if (changes.basedOn !== undefined && changes.basedOn !== present) return Result.fail(new StaleResources())
        await em.nativeUpdate(CounterEntity, { name: RESOURCES }, { value: present + 1 })
        await apply(em, rows, changes, now)
        return Result.succeed(present + 1)
      }).pipe(Effect.flatMap((changed) => Effect.fromResult<number, StaleResources>(changed))),
  }
}
