import { type EntityManager, LockMode } from "@mikro-orm/postgresql"
import { Effect, Result, Schema } from "effect"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../../model/resource.ts"
import { MonitorEntity, NetworkEntity, SeedEntity, SinkEntity } from "../entities/resources.ts"
import { CounterEntity } from "../entities/rows.ts"
import {
  type ResourceChanges,
  type ResourceKind,
  type SeedRecord,
  StaleResources,
  StorageError,
  type Stored,
  type StoredMonitor,
  type StoredResources,
} from "../storage.ts"
import type { Connection } from "./connection.ts"
import { lockPipelines, releaseRows, removeNetwork } from "./remove.ts"
import { sql } from "./sql.ts"

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

const VERSION = { name: "resources" } as const

const versionIn = async (em: EntityManager, lockMode: LockMode = LockMode.NONE): Promise<number> =>
  (await em.findOneOrFail(CounterEntity, VERSION, { lockMode })).value

/** Makes the writers wait whose rows the changes go by: monitors take effect by a batch, and rows are let go. */
const lockWriters = (em: EntityManager, changes: ResourceChanges): Promise<ReadonlyArray<string>> => {
  if ((changes.discard ?? []).length > 0) return lockPipelines(em, "all")
  const named = (changes.putMonitors ?? []).map(({ definition }) => definition.network)
  return lockPipelines(em, new Set([...named, ...(changes.deleteNetworks ?? [])]))
}

const apply = async (em: EntityManager, changes: ResourceChanges, now: number): Promise<void> => {
  const locked = await lockWriters(em, changes)
  for (const by of changes.discard ?? []) await releaseRows(em, locked, by, now)
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
export const makeResources = (connection: Connection) => {
  const read: Effect.Effect<StoredResources, StorageError> = Effect.gen(function* () {
    const stored = yield* connection.snapshot("resources", async (em) => ({
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

  const seeds: Effect.Effect<ReadonlyArray<SeedRecord>, StorageError> = connection
    .snapshot("seeds", (em) => em.find(SeedEntity, {}, { orderBy: { kind: "asc", id: "asc" } }))
    .pipe(
      Effect.map((found) => found.map(({ kind, id, path, hash }) => ({ kind: kind as ResourceKind, id, path, hash }))),
    )

  return {
    read,
    version: connection.read("resourcesVersion", (session) =>
      Effect.map(session.all<readonly [number]>(sql.counter, [VERSION.name]), ([row]) => row![0]),
    ),
    seeds,
    change: (changes: ResourceChanges, now: number): Effect.Effect<number, StorageError | StaleResources> =>
      connection
        .unit("change", async (em) => {
          // Changes take turns: whoever comes second sees the version of the first.
          const present = await versionIn(em, LockMode.PESSIMISTIC_WRITE)
          if (changes.basedOn !== undefined && changes.basedOn !== present) return Result.fail(new StaleResources())
          await em.nativeUpdate(CounterEntity, VERSION, { value: present + 1 })
          await apply(em, changes, now)
          return Result.succeed(present + 1)
        })
        .pipe(Effect.flatMap((changed) => Effect.fromResult<number, StaleResources>(changed))),
  }
}
