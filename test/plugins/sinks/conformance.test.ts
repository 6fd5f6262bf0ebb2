import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { sinkConformance } from "../../../core/plugin/conformance.ts"
import log from "../../../plugins/sinks/log/index.ts"
import script, { ScriptsDirectory } from "../../../plugins/sinks/script/index.ts"
import webhook from "../../../plugins/sinks/webhook/index.ts"
import { respond, startReceiver } from "../../support/receiver.ts"
import { pluginServices } from "./sink.ts"

const SCRIPTS = {
  "takes.sh": "cat > /dev/null",
  "refuses.sh": "echo $KEY >&2; exit 65",
  "fails.sh": "echo $KEY >&2; exit 1",
  "stalls.sh": "sleep 1000",
}

const directory = mkdtempSync(join(tmpdir(), "blockwatcher-scripts-"))
const scope = Scope.makeUnsafe()
const receiver = await Effect.runPromise(Scope.provide(startReceiver(), scope))

beforeAll(() => {
  for (const [name, body] of Object.entries(SCRIPTS)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${body}\n`)
    chmodSync(join(directory, name), 0o755)
  }
  receiver.always(({ path, headers }) => {
    const status = Number(path.slice(1))
    return status === 0 ? { kind: "hang" } : respond(status, { body: `${headers["x-key"]} is refused` })
  })
})

afterAll(async () => {
  rmSync(directory, { recursive: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const environment = Layer.provideMerge(
  pluginServices({ KEY: "hunter2", PATH: "/usr/bin:/bin" }),
  Layer.succeed(ScriptsDirectory, directory),
)

const hook = (status: number) => ({ url: `${receiver.origin}/${status}`, headers: { "x-key": "env:KEY" } })
const run = (path: string) => ({ path, env: { KEY: "env:KEY" } })

const suites = [
  sinkConformance({
    plugin: webhook,
    environment,
    config: hook(200),
    refusedConfigs: [{}, { url: "no" }, { url_secret: "env:NONE" }, { ...hook(200), body_template: "{%" }, { x: 1 }],
    failures: [
      { name: "500", config: hook(500), expected: "Transient" },
      { name: "429", config: hook(429), expected: "RateLimited" },
      { name: "404", config: hook(404), expected: "Permanent" },
      { name: "413", config: hook(413), expected: "TooLarge" },
    ],
    stalled: hook(0),
    secrets: ["hunter2"],
  }),
  sinkConformance({
    plugin: script,
    environment,
    config: run("takes.sh"),
    refusedConfigs: [{}, { path: "/bin/sh" }, { path: "none.sh" }, { path: "takes.sh", env: { A: "env:NONE" } }],
    failures: [
      { name: "exit code 65", config: run("refuses.sh"), expected: "Permanent" },
      { name: "exit code 1", config: run("fails.sh"), expected: "Transient" },
      { name: "no end", config: { ...run("stalls.sh"), timeout_ms: 100 }, expected: "Transient" },
    ],
    stalled: run("stalls.sh"),
    secrets: ["hunter2"],
  }),
  sinkConformance({
    plugin: log,
    environment,
    config: {},
    refusedConfigs: [{ level: "loud" }, { file: "x" }],
    failures: [],
  }),
]

describe.each([
  { name: "webhook", checks: suites[0] ?? [] },
  { name: "script", checks: suites[1] ?? [] },
  { name: "log", checks: suites[2] ?? [] },
])("the $name sink", ({ checks }) => {
  for (const check of checks) it.live(check.name, () => check.effect)
})
