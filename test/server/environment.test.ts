import { inspect } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Effect, Layer, Logger, Redacted } from "effect"
import { assert, describe, it } from "vitest"
import { readEnvironment } from "../../server/environment.ts"

const read = async (variables: Record<string, string>) => {
  const warnings: Array<string> = []
  const logger = Logger.make(({ message }) => void warnings.push(String(message)))
  const result = await Effect.runPromise(
    readEnvironment().pipe(
      Effect.match({
        onSuccess: (environment) => ({ environment, problems: [] as ReadonlyArray<string> }),
        onFailure: (error) => ({ environment: null, problems: "problems" in error ? error.problems : [error.message] }),
      }),
      Effect.provide(
        Layer.mergeAll(
          NodeServices.layer,
          ConfigProvider.layer(ConfigProvider.fromEnv({ env: variables, preserveEmptyStrings: true })),
          Logger.layer([logger]),
        ),
      ),
    ),
  )
  return { ...result, warnings }
}

describe("the environment", () => {
  it("has a default for every variable, also for one that is set to nothing", async () => {
    const { environment } = await read({ BLOCKWATCHER_PORT: "", PATH: "/bin" })
    assert.deepEqual(environment, {
      database: { kind: "sqlite", path: "data/blockwatcher.db" },
      host: "127.0.0.1",
      port: 4000,
      pluginsDir: null,
      seedsDir: null,
      journalDepth: 1024,
      feedRetention: 100_000,
      apiToken: null,
      scriptsDir: null,
      egressAllow: [],
      drainTimeoutMs: 20_000,
    })
  })

  it("is read from the BLOCKWATCHER_ variables", async () => {
    const { environment, warnings } = await read({
      BLOCKWATCHER_DATABASE_URL: "memory:",
      BLOCKWATCHER_HOST: "::1",
      BLOCKWATCHER_PORT: "0",
      BLOCKWATCHER_PLUGINS_DIR: "plugins",
      BLOCKWATCHER_SEEDS_DIR: "/",
      BLOCKWATCHER_JOURNAL_DEPTH: "5",
      BLOCKWATCHER_FEED_RETENTION: "6",
      BLOCKWATCHER_API_TOKEN: "s3cret",
      BLOCKWATCHER_SCRIPTS_DIR: "/tmp",
      BLOCKWATCHER_EGRESS_ALLOW: "10.0.0.0/8, fd00::/8",
      BLOCKWATCHER_DRAIN_TIMEOUT_MS: "0",
      BLOCKWATCHER_DEVNET_URL: "http://127.0.0.1:8545",
      BLOCKWATCHER_DEVNET_URL_2: "http://127.0.0.1:8546",
    })
    assert.deepEqual(
      { ...environment, apiToken: Redacted.value(environment!.apiToken!) },
      {
        database: { kind: "memory" },
        host: "::1",
        port: 0,
        pluginsDir: "plugins",
        seedsDir: "/",
        journalDepth: 5,
        feedRetention: 6,
        apiToken: "s3cret",
        scriptsDir: "/tmp",
        egressAllow: ["10.0.0.0/8", "fd00::/8"],
        drainTimeoutMs: 0,
      },
    )
    assert.deepEqual(warnings, [])
  })

  it("reports all bad values at once, each with its name, what it holds and what is accepted", async () => {
    const { problems } = await read({
      BLOCKWATCHER_DATABASE_URL: "mysql://root:hunter2@db.example/x?password=hunter3",
      BLOCKWATCHER_HOST: "not a host",
      BLOCKWATCHER_PORT: "65536",
      BLOCKWATCHER_PLUGINS_DIR: "/nowhere",
      BLOCKWATCHER_SEEDS_DIR: "package.json",
      BLOCKWATCHER_JOURNAL_DEPTH: "0",
      BLOCKWATCHER_FEED_RETENTION: "1e3",
      BLOCKWATCHER_API_TOKEN: "hunter4 with spaces",
      BLOCKWATCHER_SCRIPTS_DIR: "/nowhere",
      BLOCKWATCHER_EGRESS_ALLOW: "10.0.0.0/8,10.0.0.1,x",
      BLOCKWATCHER_DRAIN_TIMEOUT_MS: "-1",
    })
    assert.deepEqual(problems, [
      'BLOCKWATCHER_DATABASE_URL is "mysql://root:***@db.example/x?***": expected sqlite:PATH (such as sqlite:data/blockwatcher.db), postgres://USER:PASSWORD@HOST:PORT/DATABASE or memory:',
      'BLOCKWATCHER_HOST is "not a host": expected an address or host name of this machine, such as 127.0.0.1 or 0.0.0.0',
      'BLOCKWATCHER_PORT is "65536": expected an integer from 0 to 65535',
      'BLOCKWATCHER_PLUGINS_DIR is "/nowhere": expected a directory that exists',
      'BLOCKWATCHER_SEEDS_DIR is "package.json": expected a directory that exists',
      'BLOCKWATCHER_JOURNAL_DEPTH is "0": expected an integer from 1 to 1000000000',
      'BLOCKWATCHER_FEED_RETENTION is "1e3": expected an integer from 1 to 1000000000',
      "BLOCKWATCHER_API_TOKEN is a value that is not shown: expected printable ASCII characters without spaces, or the variable unset for a server without a token",
      'BLOCKWATCHER_SCRIPTS_DIR is "/nowhere": expected a directory that exists',
      'BLOCKWATCHER_EGRESS_ALLOW is "10.0.0.0/8,10.0.0.1,x": expected CIDRs with commas between them, such as 10.0.0.0/8,192.168.1.7/32; not one: "10.0.0.1", "x"',
      'BLOCKWATCHER_DRAIN_TIMEOUT_MS is "-1": expected an integer from 0 to 3600000',
    ])
  })

  it("takes the address of a PostgreSQL database, and keeps it to itself", async () => {
    for (const url of ["postgres://user:hunt%40er2@h:5432/d?sslmode=require", "postgresql:///d?host=/run/postgresql"]) {
      const { environment } = await read({ BLOCKWATCHER_DATABASE_URL: url })
      const { database } = environment!
      assert.strictEqual(database.kind === "postgres" && Redacted.value(database.url), url)
      assert.notInclude(inspect(environment), "hunt")
      assert.notInclude(JSON.stringify(environment), "hunt")
    }
  })

  it("says how an address is written that is none, and shows no password whatever it holds", async () => {
    for (const url of [
      "postgres://user:hunt@er2#@h/d",
      "postgresql://user:hunt/er2@h/d",
      "postgres://user:hunter2@h",
      "postgres://user:hunter2",
      "postgres:user:hunter2@h/d",
    ]) {
      const { problems } = await read({ BLOCKWATCHER_DATABASE_URL: url })
      assert.match(problems[0] ?? "", /expected postgres:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/, url)
      assert.notMatch(problems[0]!, /hunt|er2/)
    }
  })

  it("does not take an empty token for no token, which would open the server", async () => {
    const { problems } = await read({ BLOCKWATCHER_API_TOKEN: "" })
    assert.match(problems[0]!, /BLOCKWATCHER_API_TOKEN is empty/)
  })

  it("warns of variables that mean nothing, and says which one was meant", async () => {
    const { warnings } = await read({
      BLOCKWATCHER_PROT: "1",
      BLOCKWATCHER_SOMETHING_ELSE: "2",
      BLOCKWATCHER_PORT: "1",
    })
    assert.deepEqual(warnings.toSorted(), [
      "BLOCKWATCHER_PROT is set but means nothing; did you mean BLOCKWATCHER_PORT?",
      "BLOCKWATCHER_SOMETHING_ELSE is set but means nothing",
    ])
  })
})
