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
      tracing: null,
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
        tracing: null,
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

  it("takes where traces go from the variables of OpenTelemetry, those of traces before those of all signals", async () => {
    const { environment } = await read({
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example/otlp/",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20hunter2, x-team = a",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_EXPORTER_OTLP_TIMEOUT: "500",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment.name=a%2Cb",
      OTEL_SERVICE_NAME: "watcher",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25",
      OTEL_BSP_SCHEDULE_DELAY: "",
    })
    const { endpoint, headers, ...rest } = environment!.tracing!
    assert.strictEqual(endpoint.href, "https://collector.example/otlp/v1/traces")
    assert.deepEqual(Redacted.value(headers), { authorization: "Bearer hunter2", "x-team": "a" })
    assert.deepEqual(rest, {
      protocol: "http/json",
      compression: "gzip",
      timeoutMs: 500,
      delayMs: 5_000,
      batchSize: 512,
      serviceName: "watcher",
      resource: { "service.name": "other", "deployment.environment.name": "a,b" },
      share: 0.25,
    })
    assert.notInclude(inspect(environment), "hunter2")
  })

  it("exports no traces unless it is said where to, or that it is to be done", async () => {
    const tracing = async (variables: Record<string, string>) => (await read(variables)).environment!.tracing
    const there = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector.example/here" }
    assert.strictEqual((await tracing(there))!.endpoint.href, "http://collector.example/here")
    assert.strictEqual(
      (await tracing({ OTEL_TRACES_EXPORTER: "otlp" }))!.endpoint.href,
      "http://localhost:4318/v1/traces",
    )
    assert.isNull(await tracing({ ...there, OTEL_SDK_DISABLED: "true" }))
    assert.isNull(await tracing({ ...there, OTEL_TRACES_EXPORTER: "none" }))
    // What is exported nowhere is not judged.
    assert.isNull(await tracing({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", OTEL_SERVICE_NAME: "watcher" }))
  })

  it("reports what is wrong with the variables of OpenTelemetry beside the rest, and shows no secret", async () => {
    const { problems } = await read({
      BLOCKWATCHER_PORT: "x",
      OTEL_SDK_DISABLED: "maybe",
      OTEL_TRACES_EXPORTER: "otlp,console",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:hunter2@collector.example:4318?key=hunter3",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector.example:4318/v1/traces",
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_HEADERS: "hunter4",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-key=hunter5%0a",
      OTEL_EXPORTER_OTLP_TIMEOUT: "10s",
      OTEL_RESOURCE_ATTRIBUTES: "a=%",
      OTEL_TRACES_SAMPLER: "jaeger_remote",
      OTEL_TRACES_SAMPLER_ARG: "2",
    })
    assert.deepEqual(problems, [
      'BLOCKWATCHER_PORT is "x": expected an integer from 0 to 65535',
      'OTEL_SDK_DISABLED is "maybe": expected true or false',
      'OTEL_TRACES_EXPORTER is "otlp,console": expected otlp or none',
      'OTEL_EXPORTER_OTLP_ENDPOINT is "http://***@collector.example:4318?***": expected a URL without a user and password; give what lets one in by OTEL_EXPORTER_OTLP_HEADERS',
      'OTEL_TRACES_SAMPLER is "jaeger_remote": expected always_on or always_off or traceidratio or parentbased_always_on or parentbased_always_off or parentbased_traceidratio',
      'OTEL_TRACES_SAMPLER_ARG is "2": expected a number from 0 to 1',
      'OTEL_RESOURCE_ATTRIBUTES is "a=%": expected NAME=VALUE with commas between them, such as deployment.environment.name=staging',
      'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": expected http/protobuf or http/json; gRPC is not spoken: name the collector\'s HTTP endpoint, as a rule that of port 4318',
      "OTEL_EXPORTER_OTLP_HEADERS is a value that is not shown: expected HTTP headers as NAME=VALUE with commas between them; what is special in a value is written as %20",
      "OTEL_EXPORTER_OTLP_TRACES_HEADERS is a value that is not shown: expected HTTP headers as NAME=VALUE with commas between them; what is special in a value is written as %20",
      'OTEL_EXPORTER_OTLP_TIMEOUT is "10s": expected an integer from 1 to 600000',
    ])
  })
})
