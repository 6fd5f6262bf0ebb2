import { join } from "node:path"
import { ConfigProvider, Effect } from "effect"
import { Command } from "effect/cli"
import { type EnvironmentDefaults, readEnvironment } from "../environment.ts"
import { loadServer } from "./load-server.ts"
import { packageRoot } from "./package-root.ts"

/** Rows of an earlier run would be of a chain that is gone, so they are kept in memory unless a database is named. */
const defaults: EnvironmentDefaults = { database: { kind: "memory" }, seedsDir: join(packageRoot, "seeds") }

export const devnet = Command.make("devnet", {}, () =>
  Effect.gen(function* () {
    const environment = yield* readEnvironment(defaults)
    const { engineLayer, runServer } = yield* loadServer
    const { startDevnet } = yield* Effect.promise(() => import("../devnet/devnet.ts"))
    const node = yield* startDevnet
    const offered = ConfigProvider.fromUnknown({ BLOCKWATCHER_DEVNET_URL: node.url })
    return yield* runServer(environment, engineLayer(environment), node).pipe(
      Effect.provide(ConfigProvider.layerAdd(offered, { asPrimary: true })),
    )
  }).pipe(Effect.scoped),
).pipe(
  Command.withDescription(
    "Runs the server with a local chain, whose token keeps moving, and the seeds of this package.",
  ),
)
