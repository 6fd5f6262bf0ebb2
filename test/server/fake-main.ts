import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, Layer } from "effect"
import { loggingLayer } from "../../server/cli/logging.ts"
import { runMain } from "../../server/cli/run-main.ts"
import { runServer } from "../../server/cli/run-server.ts"
import { readEnvironment } from "../../server/environment.ts"
import { FakeEngine } from "./fake-engine.ts"

// The serve command over an engine in memory, whose drain takes as long as the first argument says, in ms.
const drain = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sleep(Number(process.argv[2] ?? 0))))

readEnvironment().pipe(
  Effect.flatMap((environment) => runServer(environment, () => Layer.merge(new FakeEngine().layer, drain))),
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      loggingLayer,
      ConfigProvider.layer(ConfigProvider.fromEnv({ preserveEmptyStrings: true })),
    ),
  ),
  runMain,
)
