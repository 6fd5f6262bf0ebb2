import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { type EnvironmentDefaults, readEnvironment } from "../environment.ts"
import { readSeeds, SeedTarget } from "../seeds.ts"
import { loadServer } from "./load-server.ts"

const defaults: EnvironmentDefaults = { database: { kind: "memory" }, seedsDir: null }

export const check = Command.make(
  "check",
  {},
  Effect.fnUntraced(function* () {
    const environment = yield* readEnvironment(defaults)
    if (environment.seedsDir === null) return yield* Console.log("The environment is fine; it names no seeds.")
    const { seedsDir } = environment
    const { engineLayer } = yield* loadServer
    // An engine without rows, whose networks never start: what the database holds is neither needed nor touched.
    const engine = engineLayer({ ...environment, database: { kind: "memory" } })(Effect.never)
    const files = yield* SeedTarget.use(({ check: judge }) =>
      Effect.tap(readSeeds(seedsDir, judge), (found) => judge(found)),
    ).pipe(Effect.provide(engine))
    return yield* Console.log(`The environment is fine, and so are ${files.length} seed files in ${seedsDir}.`)
  }),
).pipe(Command.withDescription("Checks the BLOCKWATCHER_ and OTEL_ variables and the seed files, and starts nothing."))
