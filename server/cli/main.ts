import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { actions } from "./actions.ts"
import { check } from "./check.ts"
import { deadLetters } from "./dead-letters.ts"
import { devnet } from "./devnet.ts"
import { loggingLayer } from "./logging.ts"
import { packageRoot } from "./package-root.ts"
import { runMain } from "./run-main.ts"
import { serve } from "./serve.ts"
import { usageLayer } from "./usage.ts"

const { version } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string }

Command.make("blockwatcher").pipe(
  Command.withDescription("Watches chains and delivers what matches, at least once."),
  Command.withSubcommands([serve, devnet, check, deadLetters, actions]),
  Command.run({ version }),
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      loggingLayer,
      usageLayer,
      ConfigProvider.layer(ConfigProvider.fromEnv({ preserveEmptyStrings: true })),
    ),
  ),
  runMain,
)
