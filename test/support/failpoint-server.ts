import { existsSync, readFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, Layer } from "effect"
import evmRpc from "../../plugins/sources/evm-rpc/index.ts"
import webhook from "../../plugins/sinks/webhook/index.ts"
import { engineLayer, runtimeOptions } from "../../server/cli/engine.ts"
import { loggingLayer } from "../../server/cli/logging.ts"
import { runMain } from "../../server/cli/run-main.ts"
import { runServer } from "../../server/cli/run-server.ts"
import { readEnvironment } from "../../server/environment.ts"
import { lateFinding, makeFailpoints } from "./failpoints.ts"

// A `blockwatcher serve` that comes to the failpoint in the file that FAILPOINT names: it is read at the start, if it is
// there, and at each SIGUSR2.

const file = process.env["FAILPOINT"] ?? ""
const failpoints = makeFailpoints()
const read = () => failpoints.set(JSON.parse(readFileSync(file, "utf8")))

process.on("SIGUSR2", read)
if (existsSync(file)) read()

Effect.gen(function* () {
  const environment = yield* readEnvironment()
  const options = runtimeOptions(environment)
  const decorated = {
    ...options,
    storage: failpoints.storage(options.storage),
    // The first of a name is taken.
    plugins: [lateFinding(evmRpc), failpoints.sink(webhook)],
  }
  return yield* runServer(environment, engineLayer(environment, decorated))
}).pipe(
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      loggingLayer,
      ConfigProvider.layer(ConfigProvider.fromEnv({ preserveEmptyStrings: true })),
    ),
  ),
  runMain,
)
