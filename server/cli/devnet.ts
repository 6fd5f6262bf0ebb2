import { join } from "node:path"
import { ConfigProvider, Effect, Option, type Scope } from "effect"
import { Command, Flag } from "effect/cli"
import type { DevnetError } from "../devnet/error.ts"
import type { SimulatedOptions } from "../devnet/simulated/devnet.ts"
import { DEVNET_URLS } from "../environment-values.ts"
import { type EnvironmentDefaults, readEnvironment } from "../environment.ts"
import { CommandFailed } from "./client/command-failed.ts"
import { loadServer } from "./load-server.ts"
import { packageRoot } from "./package-root.ts"

/** Rows of an earlier run would be of a chain that is gone, so they are kept in memory unless a database is named. */
const defaultsWith = (seeds: string): EnvironmentDefaults => ({
  database: { kind: "memory" },
  seedsDir: join(packageRoot, seeds),
})

const flags = {
  simulated: Flag.Boolean("simulated").pipe(
    Flag.withDescription("A chain in memory and three providers that fail and lie, in place of a real node."),
    Flag.withDefault(false),
  ),
  faults: Flag.Literals("faults", ["none", "some", "all"]).pipe(
    Flag.withDescription(
      "With --simulated: nothing goes wrong; at two providers at most what can be found out (some, the default); or at all of them anything.",
    ),
    Flag.optional,
  ),
  seed: Flag.Int("seed").pipe(
    Flag.withDescription("With --simulated: decides what goes wrong and when; chosen and shown unless given."),
    Flag.optional,
  ),
}

interface Running {
  readonly urls: ReadonlyArray<string>
  readonly token: string
}

const startReal: Effect.Effect<Running, DevnetError, Scope.Scope> = Effect.gen(function* () {
  const { startDevnet } = yield* Effect.promise(() => import("../devnet/devnet.ts"))
  const { url, token } = yield* startDevnet
  return { urls: [url], token }
})

const startSimulated = Effect.fnUntraced(function* (
  options: SimulatedOptions,
): Effect.fn.Return<Running, DevnetError, Scope.Scope> {
  const { startSimulatedDevnet } = yield* Effect.promise(() => import("../devnet/simulated/devnet.ts"))
  const running = yield* startSimulatedDevnet(options)
  yield* Effect.logInfo(`devnet: simulated providers, --faults ${options.faults} --seed ${options.seed}`)
  return running
})

export const devnet = Command.make("devnet", flags, ({ simulated, faults, seed }) =>
  Effect.gen(function* () {
    if (!simulated && (Option.isSome(faults) || Option.isSome(seed)))
      return yield* new CommandFailed({ reason: "--faults and --seed go with --simulated" })
    const environment = yield* readEnvironment(defaultsWith(simulated ? "seeds-simulated" : "seeds"))
    const { engineLayer, runServer } = yield* loadServer
    const node = yield* simulated
      ? startSimulated({
          faults: Option.getOrElse(faults, () => "some" as const),
          seed: Option.getOrElse(seed, () => Math.floor(Math.random() * 1_000_000)),
        })
      : startReal
    const offered = ConfigProvider.fromUnknown(Object.fromEntries(node.urls.map((url, i) => [DEVNET_URLS[i]!, url])))
    return yield* runServer(environment, engineLayer(environment), node).pipe(
      Effect.provide(ConfigProvider.layerAdd(offered, { asPrimary: true })),
    )
  }).pipe(Effect.scoped),
).pipe(
  Command.withDescription(
    "Runs the server with a local chain, whose token keeps moving, and the seeds of this package.",
  ),
)
