import { Effect, Layer } from "effect"
import {
  type Actions,
  Blockwatcher,
  Conflict,
  type DeadLetters,
  type Feed,
  Refused,
  type Resources,
  type RuntimeOptions,
  Seeds,
} from "../../core/index.ts"
import { builtInDirectories } from "../../core/plugin/loader-builtin.ts"
import type { OpenError } from "../../core/storage/open-error.ts"
import { layerPostgres } from "../../core/storage/postgres.ts"
import { layerSqlite } from "../../core/storage/sqlite/layer.ts"
import { ScriptsDirectory } from "../../plugins/sinks/script/directory.ts"
import type { Database } from "../environment-values.ts"
import type { Environment } from "../environment.ts"
import { SeedsRefused, SeedTarget } from "../seeds.ts"
import { isLoopback } from "../http/guard.ts"

/** What the control plane and the seed files need of a running engine. */
export type Engine = Resources | Feed | DeadLetters | Actions | Blockwatcher | SeedTarget

/** Refusals of the engine in the words of seed files. */
const inWordsOfSeeds = <E extends { readonly _tag: string }>(
  result: Effect.Effect<number, Refused | Conflict | E>,
): Effect.Effect<void, SeedsRefused | E> =>
  Effect.asVoid(
    Effect.mapError(result, (error) => {
      if (error instanceof Refused) return new SeedsRefused({ problems: error.problems })
      return error instanceof Conflict ? new SeedsRefused({ problems: [{ path: "", message: error.reason }] }) : error
    }),
  )

const seedTarget = Layer.effect(
  SeedTarget,
  Effect.map(Seeds, ({ apply, check }) =>
    SeedTarget.of({
      apply: (files) => inWordsOfSeeds(apply(files)),
      check: (files) => inWordsOfSeeds(check(files)),
    }),
  ),
)

const storageLayer = (database: Database): RuntimeOptions<OpenError>["storage"] => {
  if (database.kind === "postgres") return layerPostgres(database)
  return layerSqlite({ path: database.kind === "memory" ? ":memory:" : database.path })
}

/** What the runtime of an environment is made of. */
export const runtimeOptions = (environment: Environment): RuntimeOptions<OpenError> => ({
  storage: storageLayer(environment.database),
  pluginDirectories: [...builtInDirectories, ...(environment.pluginsDir === null ? [] : [environment.pluginsDir])],
  egress: { loopback: isLoopback(environment.host), allow: environment.egressAllow },
  settings: {
    journalDepth: environment.journalDepth,
    feedRetention: environment.feedRetention,
    drainTimeoutMs: environment.drainTimeoutMs,
  },
})

/**
 * The engine as the environment describes it, with the built-in plugins and those of the plugins directory. Its networks
 * start once `startAfter` succeeds.
 */
export const engineLayer =
  (environment: Environment, options = runtimeOptions(environment)) =>
  (startAfter: Effect.Effect<void>) =>
    seedTarget.pipe(
      Layer.provideMerge(Blockwatcher.layer({ ...options, startAfter })),
      Layer.provide(Layer.succeed(ScriptsDirectory, environment.scriptsDir)),
    )
