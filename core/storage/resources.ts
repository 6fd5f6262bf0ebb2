import type { EntityManager, LockMode } from "@mikro-orm/core"
import { Effect, Result, type Schema } from "effect"
import { type Problem, under } from "../model/problem.ts"
import { MonitorDefinition, NetworkDefinition, SinkDefinition } from "../model/resource.ts"
import { decodeConfig } from "../plugin/decode-config.ts"
import { MonitorEntity, NetworkEntity, SeedEntity, SinkEntity } from "./entities/resources.ts"
import { CounterEntity } from "./entities/rows.ts"
import { StaleResources, StorageError } from "./error.ts"
import { dropHits, removeHits } from "./gate-rows.ts"
import type { ResourceChanges, ResourceKind, SeedRecord, Stored, StoredResources } from "./stored.ts"

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

/** Reads the definition of a row, or adds what is wrong with it to the problems. */
const decode = <D>(
  kind: ResourceKind,
  schema: Schema.Codec<D, any>,
  { id, definition, revision }: ResourceRow,
  problems: Array<Problem>,
): ReadonlyArray<Stored<D>> => {
  const read = Result.flatMap(parse(definition), (json) => decodeConfig(schema, json))
  if (Result.isSuccess(read)) return [{ definition: read.success, revision }]
  problems.push(...under(`${kind} "${id}"`, read.failure))
  return []
}

const parse = (definition: string): Result.Result<unknown, ReadonlyArray<Problem>> =>
  Result.try({
    try: () => JSON.parse(definition),
    catch: (error) => [{ path: "", message: `is no JSON: ${error instanceof Error ? error.message : String(error)}` }],
  })

/** Rows that were edited by hand, or come from a backup of another version. */
const invalid = (problems: ReadonlyArray<Problem>): StorageError => {
  const all = problems.map(({ path, message }) => `\n  ${path}: ${message}`).join("")
  return new StorageError({
    operation: "resources",
    reason: `definitions in the database do not validate, correct or delete their rows:${all}`,
    retryable: false,
  })
}

/** The counter that holds the version of all resources. */
export const RESOURCES = "resources"

export const versionIn = async (em: EntityManager, options: { readonly lockMode?: LockMode } = {}): Promise<number> =>
  (await em.findOneOrFail(CounterEntity, { name: RESOURCES }, options)).value

const isEnabled = (definition: string): boolean => (JSON.parse(definition) as MonitorDefinition).enabled

/** Writes a set of changes, in the present transaction. */
const apply = async <Manager extends EntityManager>(
  em: Manager,
  { release, removeNetwork }: RowChanges<Manager>,
  changes: ResourceChanges,
  now: number,
): Promise<void> => {
  await release(em, changes, now)
  for (const id of changes.deleteMonitors ?? []) {
    await removeHits(em, id)
    await em.nativeDelete(MonitorEntity, { id })
  }
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
  for (const { id, paused } of changes.pauseSinks ?? []) await em.nativeUpdate(SinkEntity, { id }, { paused })
  for (const { definition, revision, matchRevision, effectiveFrom } of changes.putMonitors ?? []) {
    const before = await em.findOne(MonitorEntity, { id: definition.id })
    const goesOn = before?.matchRevision === matchRevision
    if (before !== null && !goesOn) await dropHits(em, definition.id)
    // A batch that was minted since the change was made may have recorded it. One that was minted while the monitor was
    // off says nothing: what followed was missed.
    const recorded =
      goesOn && effectiveFrom === null && definition.enabled && isEnabled(before.definition) ? before : null
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
    const problems: Array<Problem> = []
    const resources: StoredResources = {
      version: stored.version,
      networks: stored.networks.flatMap((row) => decode("network", NetworkDefinition, row, problems)),
      monitors: stored.monitors.flatMap((row) =>
        decode("monitor", MonitorDefinition, row, problems).map((monitor) => ({
          ...monitor,
          matchRevision: row.matchRevision,
          effectiveFrom:
            row.effectivePrimary == null || row.effectiveSecondary == null
              ? null
              : { primary: row.effectivePrimary, secondary: row.effectiveSecondary },
        })),
      ),
      sinks: stored.sinks.flatMap((row) =>
        decode("sink", SinkDefinition, row, problems).map((sink) => ({ ...sink, paused: row.paused ?? null })),
      ),
    }
    return problems.length === 0 ? resources : yield* invalid(problems)
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
