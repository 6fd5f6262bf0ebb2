import { request as httpRequest } from "node:http"
import { Effect, Redacted } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { getIntrospectionQuery } from "graphql"
import { StorageError } from "../../core/storage/error.ts"
import { graphql, graphqlData } from "../support/graphql.ts"
import { emitted } from "./fake-engine.ts"
import { serveFake } from "./serve-fake.ts"

let server: Awaited<ReturnType<typeof serveFake>>
beforeEach(async () => {
  server = await serveFake()
})
afterEach(() => server.close())

const testMonitor = (block: string) =>
  `{ testMonitor(block: ${block}, input: { id: "t", network: "devnet", selector: { kind: "event" }, predicate: null, sinks: [] }) { id } }`

describe("queries", () => {
  it("answer networks with their monitors and sinks, in three reads", async () => {
    const data = await graphqlData(
      server.url,
      `{ networks {
        id module config state error lag inFlightEvents deadLetterCount revision
        checkpoint { network cursor { primary secondary } updatedAt }
        head { primary }
        monitors { id network { id } selector predicate gate { type } enabled effectiveFrom { primary secondary }
          sinks { id module retry { maxAttempts initialBackoffMs maxBackoffMs } throttle { windowMs } concurrency buffer state } }
      } }`,
    )
    assert.deepEqual(data, {
      networks: [
        {
          id: "devnet",
          module: "evm-rpc",
          config: { chain_id: 31337 },
          state: "RUNNING",
          error: null,
          lag: "3",
          inFlightEvents: 2,
          deadLetterCount: 1,
          revision: "n1",
          checkpoint: {
            network: "devnet",
            cursor: { primary: "12", secondary: 0 },
            updatedAt: "2023-11-14T22:13:20.000Z",
          },
          head: { primary: "15" },
          monitors: [
            {
              id: "transfers",
              network: { id: "devnet" },
              selector: { kind: "event" },
              predicate: null,
              gate: null,
              enabled: true,
              effectiveFrom: { primary: "1", secondary: 2_147_483_647 },
              sinks: [
                {
                  id: "alerts",
                  module: "webhook",
                  retry: { maxAttempts: 8, initialBackoffMs: 200, maxBackoffMs: 30_000 },
                  throttle: null,
                  concurrency: 1,
                  buffer: "MEMORY",
                  state: "RUNNING",
                },
              ],
            },
          ],
        },
      ],
    })
    assert.strictEqual(server.engine.reads, 3)
  })

  it("answer one resource by its id, and null for one that is not there", async () => {
    const data = await graphqlData(
      server.url,
      `{ a: network(id: "devnet") { id } b: network(id: "x") { id } c: monitor(id: "transfers") { id } d: monitor(id: "x") { id }
         e: sink(id: "alerts") { id } f: sink(id: "x") { id } g: monitors(network: "x") { id } plugins { name kind source error } }`,
    )
    assert.deepEqual(data, {
      a: { id: "devnet" },
      b: null,
      c: { id: "transfers" },
      d: null,
      e: { id: "alerts" },
      f: null,
      g: [],
      plugins: [
        { name: "evm-rpc", kind: "source", source: "built in", error: null },
        { name: "broken", kind: "unknown", source: "plugins/broken.ts", error: "Unexpected token" },
      ],
    })
  })

  it("page dead letters and matches", async () => {
    server.engine.publish(emitted(1), emitted(2))
    const data = await graphqlData(
      server.url,
      `{ deadLetters(network: "devnet", sink: "alerts", first: 1, after: "c0") {
           totalCount edges { cursor node { id kind payload createdAt cursor { primary } replayable whyNot reason attempts } }
           pageInfo { hasNextPage endCursor } }
         matches(monitor: "transfers", first: 1) { edges { cursor node { id event time } } pageInfo { hasNextPage endCursor } } }`,
    )
    assert.deepEqual(data, {
      deadLetters: {
        totalCount: 2,
        edges: [
          {
            cursor: "c1",
            node: {
              id: "letter-1",
              kind: "MATCH",
              payload: { type: "match", id: "match-1", event: {} },
              createdAt: "2023-11-14T22:13:20.000Z",
              cursor: { primary: "1" },
              replayable: true,
              whyNot: null,
              reason: "permanent: 404",
              attempts: 8,
            },
          },
        ],
        pageInfo: { hasNextPage: true, endCursor: "c1" },
      },
      matches: {
        edges: [
          {
            cursor: "p1",
            node: {
              id: "match-1",
              event: { kind: "event", args: { value: "1" } },
              time: "2023-11-14T22:13:20.000Z",
            },
          },
        ],
        pageInfo: { hasNextPage: true, endCursor: "p1" },
      },
    })
    assert.deepEqual(
      server.engine.calls.map(({ input }) => input),
      [
        { network: "devnet", sink: "alerts", first: 1, after: "c0" },
        { monitor: "transfers", first: 1, after: null },
      ],
    )
  })

  it("refuse a page size outside 1 to 1000", async () => {
    for (const first of [0, -1, 1001]) {
      const { errors } = await graphql(
        server.url,
        `
          query ($n: Int) {
            matches(first: $n) {
              pageInfo {
                endCursor
              }
            }
          }
        `,
        {
          n: first,
        },
      )
      assert.strictEqual(errors[0]?.extensions?.code, "INVALID")
      assert.strictEqual(errors[0]?.extensions?.problems?.[0]?.path, "first")
    }
  })

  it("test a monitor in one block, its number as a string or an integer", async () => {
    assert.deepEqual(await graphqlData(server.url, testMonitor("7")), { testMonitor: [{ id: "match-7" }] })
    assert.deepEqual(await graphqlData(server.url, testMonitor('"8"')), { testMonitor: [{ id: "match-8" }] })
    assert.deepEqual(server.engine.calls[0], {
      name: "testMonitor",
      input: { id: "t", network: "devnet", selector: { kind: "event" }, sinks: [], enabled: true },
      options: 7,
    })
    const { errors } = await graphql(server.url, testMonitor('"123456789012345678901234567890"'))
    assert.strictEqual(errors[0]?.extensions?.code, "INVALID")
    assert.match((await graphql(server.url, testMonitor('"1.5"'))).errors[0]!.message, /decimal integer/)
  })
})

describe("mutations", () => {
  it("hand the input over in camelCase, nulls left out and JSON as it is", async () => {
    const data = await graphqlData(
      server.url,
      `mutation ($input: SinkInput!) { putSink(input: $input) { id revision retry { maxAttempts maxBackoffMs } } }`,
      {
        input: {
          id: "new",
          module: "webhook",
          config: { url: "http://127.0.0.1", nothing: null },
          retry: { maxAttempts: 3, maxBackoffMs: null },
          throttle: null,
          aggregate: { windowMs: 5, maxBatch: null },
          buffer: "DURABLE",
          ifRevision: null,
        },
      },
    )
    assert.deepEqual(data, { putSink: { id: "new", revision: "s2", retry: { maxAttempts: 3, maxBackoffMs: 30_000 } } })
    assert.deepEqual(server.engine.calls, [
      {
        name: "putSink",
        input: {
          id: "new",
          module: "webhook",
          config: { url: "http://127.0.0.1", nothing: null },
          retry: { maxAttempts: 3 },
          aggregate: { windowMs: 5 },
          concurrency: 1,
          buffer: "DURABLE",
        },
        options: { validateOnly: false },
      },
    ])
  })

  it("see their own change, and that of the mutation before them", async () => {
    const data = await graphqlData(
      server.url,
      `mutation {
        a: putMonitor(input: { id: "a", network: "devnet", selector: {}, sinks: [] }) { network { monitors { id } } }
        b: putMonitor(input: { id: "b", network: "devnet", selector: {}, sinks: [], gate: { type: THRESHOLD, count: 3, windowMs: 1000 } }) { gate { type count windowMs by } network { monitors { id } } }
        deleteMonitor(id: "a")
      }`,
    )
    assert.deepEqual(data, {
      a: { network: { monitors: [{ id: "transfers" }, { id: "a" }] } },
      b: {
        gate: { type: "THRESHOLD", count: 3, windowMs: 1000, by: null },
        network: { monitors: [{ id: "transfers" }, { id: "a" }, { id: "b" }] },
      },
      deleteMonitor: true,
    })
  })

  it("take and show gates and delivery policies", async () => {
    const data = await graphqlData(
      server.url,
      `mutation {
        a: putMonitor(input: { id: "a", network: "devnet", selector: {}, sinks: [], gate: { type: MAX_ONCE, windowMs: 60000, by: "args.from" } }) {
          gate { type count windowMs by } }
        b: putMonitor(input: { id: "b", network: "devnet", selector: {}, sinks: [], gate: { type: THRESHOLD, count: 2, windowMs: 5, by: null } }) {
          gate { type count windowMs by } }
        c: putSink(input: { id: "c", module: "webhook", config: {}, throttle: { maxDeliveries: 3, windowMs: 1000 },
            aggregate: { windowMs: 50, maxBatch: 10 }, concurrency: 4, buffer: DURABLE }) {
          throttle { maxDeliveries windowMs } aggregate { windowMs maxBatch } concurrency buffer }
      }`,
    )
    assert.deepEqual(data, {
      a: { gate: { type: "MAX_ONCE", count: null, windowMs: 60_000, by: "args.from" } },
      b: { gate: { type: "THRESHOLD", count: 2, windowMs: 5, by: null } },
      c: {
        throttle: { maxDeliveries: 3, windowMs: 1000 },
        aggregate: { windowMs: 50, maxBatch: 10 },
        concurrency: 4,
        buffer: "DURABLE",
      },
    })
    assert.deepEqual(
      server.engine.calls.map(({ input }) => (input as { readonly gate?: unknown }).gate),
      [
        { type: "max_once", windowMs: 60_000, by: "args.from" },
        { type: "threshold", count: 2, windowMs: 5 },
        undefined,
      ],
    )
  })

  it("pause a sink and let it go on, and show why it rests", async () => {
    const data = await graphqlData(
      server.url,
      `mutation {
        paused: pauseSink(id: "alerts") { id state error }
        resumed: resumeSink(id: "alerts") { id state error }
      }`,
    )
    assert.deepEqual(data, {
      paused: { id: "alerts", state: "PAUSED", error: "by an operator" },
      resumed: { id: "alerts", state: "RUNNING", error: null },
    })
    for (const operation of ["pauseSink", "resumeSink"]) {
      const { errors } = await graphql(server.url, `mutation { ${operation}(id: "nobody") { id } }`)
      assert.strictEqual(errors[0]?.extensions?.code, "NOT_FOUND")
    }
  })

  it("pass ifRevision, validateOnly and discard on", async () => {
    const conflict = await graphql(
      server.url,
      `
        mutation {
          putNetwork(input: { id: "devnet", module: "evm-rpc", config: {}, ifRevision: "other" }) {
            id
          }
        }
      `,
    )
    assert.strictEqual(conflict.errors[0]?.extensions?.code, "CONFLICT")
    await graphqlData(
      server.url,
      `mutation { putNetwork(input: { id: "checked", module: "evm-rpc", config: {}, validateOnly: true }) { id } }`,
    )
    assert.deepEqual(
      server.engine.networks.map(({ id }) => id),
      ["devnet"],
    )
    const missing = await graphql(
      server.url,
      `
        mutation {
          deleteSink(id: "nobody", discard: true)
        }
      `,
    )
    assert.strictEqual(missing.errors[0]?.extensions?.code, "NOT_FOUND")
    assert.deepEqual(server.engine.calls.at(-1)?.options, { discard: true })
  })
})

describe("errors", () => {
  it("list every problem of a refused resource", async () => {
    const { errors, data } = await graphql(
      server.url,
      `
        mutation {
          putMonitor(input: { id: "refused", network: "devnet", selector: {}, sinks: [] }) {
            id
          }
        }
      `,
    )
    assert.isNull(data)
    assert.deepEqual(errors[0]?.extensions, {
      code: "INVALID",
      problems: [
        { path: "selector.event", message: "is no event" },
        { path: "predicate", message: "does not compile" },
      ],
    })
  })

  it("name the storage when it does not answer", async () => {
    server.engine.failure = Effect.fail(new StorageError({ operation: "read", reason: "locked", retryable: true }))
    const { errors } = await graphql(
      server.url,
      `
        {
          networks {
            id
          }
        }
      `,
    )
    assert.strictEqual(errors[0]?.extensions?.code, "STORAGE_UNAVAILABLE")
    assert.strictEqual(errors[0]?.message, "storage: read: locked")
  })

  it("say nothing of a defect but where the log says more", async () => {
    server.engine.failure = Effect.die(new Error("the password is hunter2"))
    const { errors } = await graphql(
      server.url,
      `
        {
          networks {
            id
          }
        }
      `,
    )
    assert.strictEqual(errors[0]?.extensions?.code, "INTERNAL_SERVER_ERROR")
    assert.match(errors[0]!.extensions!.reference!, /^[0-9a-f-]{36}$/)
    assert.notInclude(JSON.stringify(errors), "hunter2")
  })

  it("mask what goes wrong outside an effect as well", async () => {
    server.engine.letters = [{ ...server.engine.letters[0]!, payload: "{ hunter2" }]
    const { errors } = await graphql(
      server.url,
      `
        {
          deadLetters(network: "devnet") {
            edges {
              node {
                payload
              }
            }
          }
        }
      `,
    )
    assert.strictEqual(errors[0]?.extensions?.code, "INTERNAL_SERVER_ERROR")
    assert.notInclude(JSON.stringify(errors), "hunter2")
  })

  it("keep integers that JSON would round out of a config", async () => {
    const { errors } = await graphql(
      server.url,
      `
        mutation {
          putNetwork(input: { id: "n", module: "evm-rpc", config: { start: 9007199254740993 } }) {
            id
          }
        }
      `,
    )
    assert.match(errors[0]!.message, /write it as a string/)
  })
})

describe("limits", () => {
  it("let introspection through", async () => {
    const data = await graphqlData(
      server.url,
      getIntrospectionQuery({ inputValueDeprecation: true, schemaDescription: true }),
    )
    assert.isAbove(data["__schema"].types.length, 30)
  })

  it("refuse operations that are too deep, too wide or too dear", async () => {
    const deep = `{ networks { ${"monitors { network { ".repeat(6)} id ${"} }".repeat(6)} } }`
    const wide = `{ ${Array.from({ length: 40 }, (_, i) => `n${i}: networks { id }`).join(" ")} }`
    const fields = "id network sink monitor matchId kind attempts reason createdAt payload replayable whyNot"
    const dear = `{ ${["a", "b", "c", "d", "e"].map((x) => `${x}: deadLetters(network: "devnet", first: 1000) { edges { node { ${fields} } } }`).join(" ")} }`
    const long = `{ ${"networks { id } ".repeat(2000)} }`
    for (const query of [deep, wide, dear, long]) {
      const { errors } = await graphql(server.url, query)
      assert.strictEqual(errors[0]?.extensions?.code, "TOO_COMPLEX", query.slice(0, 50))
    }
    await graphqlData(
      server.url,
      `{ deadLetters(network: "devnet", first: 1000) { edges { cursor node { ${fields} cursor { primary secondary } } } } }`,
    )
  })

  it("refuse a body that is too long", async () => {
    const { errors, status } = await graphql(
      server.url,
      `
        {
          networks {
            id
          }
        }
      `,
      { filler: "x".repeat(1_100_000) },
    )
    assert.strictEqual(status, 413)
    assert.strictEqual(errors[0]?.extensions?.code, "REQUEST_ENTITY_TOO_LARGE")
  })
})

describe("health", () => {
  it("is answered while the process serves, with what is in trouble", async () => {
    const get = async (path: string) => {
      const response = await fetch(server.origin + path)
      return { status: response.status, body: await response.json() }
    }
    assert.deepEqual(await get("/healthz"), {
      status: 200,
      body: { status: "ok", ...server.engine.health, actions: [], eventStore: null },
    })
    assert.strictEqual((await get("/readyz")).status, 200)
    server.engine.health = {
      networks: [{ id: "devnet", state: "STARTING", error: "refused", owes: [] }],
      sinks: [{ id: "log", state: "PAUSED", error: "by an operator" }],
      storage: "locked",
    }
    assert.deepEqual(await get("/healthz"), {
      status: 200,
      body: { status: "degraded", ...server.engine.health, actions: [], eventStore: null },
    })
    assert.strictEqual((await get("/readyz")).status, 503)
  })

  it("gives Prometheus the states of networks and sinks, dead letters, and what sinks are owed", async () => {
    server.engine.health = {
      networks: [
        { id: "devnet", state: "RUNNING", error: null, owes: [{ sink: "log", deliveries: 3, oldestSeconds: 1.5 }] },
      ],
      sinks: [{ id: "log", state: "PAUSED", error: "by an operator" }],
      storage: null,
    }
    // A sink that rests is no reason to take the control plane out of service, through which it is resumed.
    assert.strictEqual((await fetch(`${server.origin}/readyz`)).status, 200)
    const response = await fetch(`${server.origin}/metrics`)
    assert.strictEqual(response.status, 200)
    assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/)
    const lines = (await response.text()).split("\n")
    assert.includeMembers(lines, [
      'blockwatcher_network_state{network="devnet",state="RUNNING"} 1',
      'blockwatcher_dead_letters{network="devnet"} 1',
      'blockwatcher_sink_state{sink="log",state="PAUSED"} 1',
      'blockwatcher_owed_deliveries{network="devnet",sink="log"} 3',
      'blockwatcher_owed_oldest_seconds{network="devnet",sink="log"} 1.5',
    ])
  })

  it("lies at fixed paths, and others hold nothing", async () => {
    const response = await fetch(`${server.origin}/nothing`)
    assert.strictEqual(response.status, 404)
  })
})

/** A request with any headers: fetch does not let Host and Origin be set. */
const raw = (headers: Record<string, string>, options: { method?: string; path?: string; body?: string } = {}) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    const { port } = server.address
    const request = httpRequest(
      { host: "127.0.0.1", port, method: options.method ?? "POST", path: options.path ?? "/graphql", headers },
      (response) => {
        let body = ""
        response.on("data", (chunk) => (body += chunk))
        response.on("end", () => resolve({ status: response.statusCode!, body }))
      },
    )
    request.on("error", reject)
    request.end(options.body ?? JSON.stringify({ query: `mutation { deleteSink(id: "alerts") }` }))
  })

describe("pages of other sites", () => {
  const json = { "content-type": "application/json" }

  it("cannot send a body that browsers send without asking", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/graphql",
    ]) {
      const { status } = await raw({ "content-type": type })
      assert.strictEqual(status, 415, type)
    }
    assert.strictEqual((await raw({})).status, 415)
    assert.deepEqual(server.engine.calls, [])
  })

  it("cannot use their origin, nor a name that they rebound to loopback", async () => {
    const { port } = server.address
    for (const headers of [
      { origin: "http://evil.example" },
      { origin: `http://localhost:${port + 1}`, host: `localhost:${port}` },
      { origin: "null" },
      { host: "evil.example" },
      { host: `evil.example:${port}` },
      { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
      { host: `127.0.0.1.evil.example:${port}` },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    ]) {
      const { status, body } = await raw({ ...json, ...headers } as unknown as Record<string, string>)
      assert.strictEqual(status, 403, JSON.stringify(headers))
      assert.strictEqual(JSON.parse(body).errors[0].extensions.code, "FORBIDDEN")
    }
    assert.deepEqual(server.engine.calls, [])
  })

  it("are not what this server's own page is, under any name of loopback", async () => {
    const { port } = server.address
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) {
      const { status } = await raw({ ...json, host, origin: `http://${host}`, "sec-fetch-site": "same-origin" })
      assert.strictEqual(status, 200, host)
    }
  })

  it("get no permission by CORS", async () => {
    const response = await fetch(server.url, {
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST" },
    })
    assert.isNull(response.headers.get("access-control-allow-origin"))
  })

  it("cannot change anything by GET", async () => {
    const query = encodeURIComponent(`mutation { deleteSink(id: "alerts") }`)
    const response = await fetch(`${server.url}?query=${query}`)
    assert.strictEqual(response.status, 405)
    assert.deepEqual(server.engine.calls, [])
  })
})

describe("a server with a token", () => {
  beforeEach(async () => {
    await server.close()
    server = await serveFake({ token: Redacted.make("s3cret") })
  })

  it("asks every operation for it", async () => {
    for (const headers of [
      {},
      { authorization: "Bearer" },
      { authorization: "Bearer s3cre" },
      { authorization: "Bearer s3crets" },
      { authorization: "Basic s3cret" },
    ] as Array<Record<string, string>>) {
      const { status, errors } = await graphql(
        server.url,
        `
          {
            networks {
              id
            }
          }
        `,
        {},
        headers,
      )
      assert.strictEqual(status, 401)
      assert.strictEqual(errors[0]?.extensions?.code, "UNAUTHENTICATED")
    }
    assert.strictEqual((await fetch(`${server.url}?query={networks{id}}`)).status, 401)
    assert.strictEqual(server.engine.reads, 0)
    const data = await graphqlData(server.url, `{ networks { id } }`, {}, { authorization: "Bearer s3cret" })
    assert.deepEqual(data, { networks: [{ id: "devnet" }] })
  })

  it("shows GraphiQL and health without it, and never shows it", async () => {
    const page = await fetch(server.url, { headers: { accept: "text/html" } })
    assert.strictEqual(page.status, 200)
    assert.notInclude(await page.text(), "s3cret")
    assert.strictEqual((await fetch(`${server.origin}/healthz`)).status, 200)
    assert.strictEqual((await fetch(`${server.origin}/metrics`)).status, 401)
  })
})
