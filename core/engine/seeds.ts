import { Context, Effect, Layer, Result } from "effect"
import { type Problem, under } from "../model/problem.ts"
import type { Egress } from "../plugin/egress.ts"
import { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import type { StorageError } from "../storage/error.ts"
import { Storage } from "../storage/storage.ts"
import type { ResourceKind } from "../storage/stored.ts"
import { revisionOf } from "./canonical.ts"
import { checkDefinitions } from "./check-definitions.ts"
import { checkBuffers } from "./check-buffers.ts"
import { checkFixed } from "./check-fixed.ts"
import { Engine } from "./engine.ts"
import { type Conflict, Refused } from "./error.ts"
import { readSeed, type Seed, type SeedFile, seedProblem } from "./seed-json.ts"

export type { SeedFile } from "./seed-json.ts"

/**
 * Applies seed files: resources as JSON beside the program. A file that changed since it was last applied wins over
 * what is stored; one that did not leaves edits and deletions made elsewhere alone; a file that is gone removes nothing.
 */
export class Seeds extends Context.Service<
  Seeds,
  {
    /** Applies all files that changed in one transaction, or nothing. Answers how many resources it put. */
    readonly apply: (files: ReadonlyArray<SeedFile>) => Effect.Effect<number, Refused | Conflict | StorageError>
    /** Checks what `apply` would put, and puts nothing. */
    readonly check: (files: ReadonlyArray<SeedFile>) => Effect.Effect<number, Refused | Conflict | StorageError>
  }
>()("blockwatcher/Seeds") {
  static readonly layer: Layer.Layer<Seeds, never, Engine | Storage | Plugins | Egress | Secrets> = Layer.effect(
    Seeds,
    Effect.suspend(() => makeSeeds()),
  )
}

const refuse = (problems: ReadonlyArray<Problem>) => new Refused({ resource: "the set of seed files", problems })

const makeSeeds = Effect.fnUntraced(function* () {
  const engine = yield* Engine
  const storage = yield* Storage
  const plugins = yield* Plugins
  const context = yield* Effect.context<Egress | Secrets>()
  const { catalog, sinks } = engine

  const storedDefinition = (kind: ResourceKind, id: string): object | undefined => {
    if (kind === "network") return catalog.networks.get(id)?.definition
    return kind === "sink" ? sinks.get(id)?.definition : catalog.monitors.get(id)?.stored.definition
  }

  /** Says what a file that wins changes, by field and without values, which may be secret. */
  const logDifference = (seed: Seed, definition: object) => {
    const id = String(seed.input["id"])
    const before = storedDefinition(seed.kind, id)
    if (before === undefined) return Effect.logInfo(`${seed.path}: puts the new ${seed.kind} ${id}`)
    const fields = Object.entries(definition).flatMap(([field, value]) =>
      revisionOf([value]) === revisionOf([before[field as keyof typeof before]]) ? [] : [field],
    )
    return fields.length === 0
      ? Effect.void
      : Effect.logInfo(`${seed.path}: changes ${fields.join(", ")} of the ${seed.kind} ${id}`)
  }

  const apply = Effect.fnUntraced(function* (files: ReadonlyArray<SeedFile>, store: boolean) {
    const problems: Array<Problem> = []
    const seeds: Array<Seed> = []
    for (const file of files) {
      const seed = readSeed(file)
      if (Result.isFailure(seed)) problems.push(...under(file.path, seed.failure))
      else {
        seeds.push(seed.success)
        problems.push(...under(file.path, seed.success.problems))
      }
    }
    problems.push(...duplicates(seeds))
    const readable = problems.length === 0
    const applied = new Map((yield* storage.seeds).map(({ kind, id, hash }) => [`${kind} ${id}`, hash]))
    const changed = seeds.filter(({ kind, input, hash }) => applied.get(`${kind} ${String(input["id"])}`) !== hash)
    const ofKind = (kind: ResourceKind) => changed.filter((seed) => seed.kind === kind)
    const byKind = { network: ofKind("network"), monitor: ofKind("monitor"), sink: ofKind("sink") }
    const checked = yield* Effect.provideContext(
      checkDefinitions(
        { catalog, sinks, plugins },
        {
          networks: byKind.network.map(({ input }) => input),
          monitors: byKind.monitor.map(({ input }) => input),
          sinks: byKind.sink.map(({ input }) => input),
        },
      ),
      context,
    )
    if (Result.isFailure(checked)) {
      for (const refused of checked.failure) {
        const { path } = byKind[refused.kind][refused.index]!
        problems.push(...under(path, refused.problems.map(seedProblem)))
      }
      return yield* refuse(problems)
    }
    if (!readable) return yield* refuse(problems)
    if (changed.length === 0) return 0
    const set = checked.success
    yield* checkFixed(catalog, plugins, storage, set.networks)
    yield* checkBuffers(catalog, sinks, storage, set.sinks)
    if (!store) return changed.length
    const definitions = {
      network: set.networks.map(({ definition }) => definition),
      monitor: set.monitors.map(({ stored }) => stored.definition),
      sink: set.sinks.map(({ definition }) => definition),
    }
    for (const kind of ["network", "sink", "monitor"] as const) {
      for (const [i, seed] of byKind[kind].entries()) yield* logDifference(seed, definitions[kind][i]!)
    }
    yield* engine.put(
      set,
      changed.map(({ kind, path, hash, input }) => ({ kind, id: String(input["id"]), path, hash })),
    )
    return changed.length
  })

  return Seeds.of({
    apply: (files) => engine.exclusively(apply(files, true)),
    check: (files) => engine.exclusively(apply(files, false)),
  })
})

/** Two files of one kind with one id: neither can be the one that counts. */
const duplicates = (seeds: ReadonlyArray<Seed>): ReadonlyArray<Problem> =>
  seeds.flatMap((seed, i) => {
    const other = seeds.find(
      ({ kind, input }, j) =>
        j !== i && kind === seed.kind && input["id"] !== undefined && input["id"] === seed.input["id"],
    )
    const message = `the ${seed.kind} "${String(seed.input["id"])}" is also described by ${other?.path}; keep one of the two`
    return other === undefined ? [] : [{ path: `${seed.path}.id`, message }]
  })
