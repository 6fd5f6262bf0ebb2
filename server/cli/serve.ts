import { Effect } from "effect"
import { Command } from "effect/cli"
import { readEnvironment } from "../environment.ts"
import { loadServer } from "./load-server.ts"

export const serve = Command.make("serve", {}, () =>
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    const { engineLayer, runServer } = yield* loadServer
    return yield* runServer(environment, engineLayer(environment))
  }),
).pipe(Command.withDescription("Runs the server as the BLOCKWATCHER_ variables say."))
