import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Secrets } from "../../../../core/plugin/secrets.ts"
import { Config, resolveEndpoints } from "../../../../plugins/sources/evm-rpc/config.ts"
import evmRpc from "../../../../plugins/sources/evm-rpc/index.ts"
import { secretsFrom } from "./driver.ts"

const decode = (json: unknown) =>
  Effect.result(Schema.decodeUnknownEffect(Config)(json, { errors: "all", onExcessProperty: "error" }))

const resolve = (config: Pick<Config, "url" | "urls" | "ws_url">, secrets: Readonly<Record<string, string>> = {}) =>
  resolveEndpoints(config).pipe(Effect.provideService(Secrets, secretsFrom(secrets)))

describe("the config", () => {
  it.effect("has defaults for all but the chain and its nodes", () =>
    Effect.gen(function* () {
      const decoded = yield* Schema.decodeUnknownEffect(Config)({ chain_id: 1, url: "https://node.example" })
      assert.deepStrictEqual(decoded, {
        chain_id: 1,
        url: "https://node.example",
        confirmations: 12,
        start: "latest",
        poll_interval_ms: 1000,
        max_block_range: 1000,
      })
    }),
  )

  const refused: ReadonlyArray<readonly [string, unknown, string]> = [
    ["no node", { chain_id: 1 }, "expected at least one URL of a node"],
    ["an empty list", { chain_id: 1, urls: [] }, "urls"],
    ["another protocol", { chain_id: 1, urls: ["ws://node.example"] }, "expected an http:// or https:// URL"],
    ["no URL", { chain_id: 1, url: "node" }, "expected an http:// or https:// URL"],
    ["an unknown key", { chain_id: 1, url: "http://a", wss_url: "ws://a" }, "wss_url"],
    [
      "HTTP where a WebSocket is",
      { chain_id: 1, url: "http://a", ws_url: "http://a" },
      "expected a ws:// or wss:// URL",
    ],
    ["a negative depth", { chain_id: 1, url: "http://a", confirmations: -1 }, "expected a number of blocks up to"],
    ["an unknown tag", { chain_id: 1, url: "http://a", confirmations: "pending" }, "expected a number of blocks up to"],
    ["a negative start", { chain_id: 1, url: "http://a", start: -1 }, 'expected "latest", "latest-N"'],
    ["an unknown start", { chain_id: 1, url: "http://a", start: "latest-x" }, 'expected "latest", "latest-N"'],
    ["no chain", { url: "http://a" }, "chain_id"],
    ["no polls", { chain_id: 1, url: "http://a", poll_interval_ms: 0 }, "poll_interval_ms"],
  ]
  for (const [name, json, message] of refused)
    it.effect(`${name} is refused`, () =>
      Effect.gen(function* () {
        const result = yield* decode(json)
        assert.strictEqual(result._tag, "Failure")
        if (result._tag === "Failure") assert.include(String(result.failure), message)
      }),
    )

  it("marks URLs as sensitive and the chain as fixed", () => {
    assert.deepStrictEqual(evmRpc.sensitive, ["url", "urls.*", "ws_url"])
    assert.deepStrictEqual(evmRpc.fixed, ["chain_id"])
  })
})

describe("endpoints", () => {
  it.effect("come in order, each once, labelled without what may be a key", () =>
    Effect.gen(function* () {
      const { nodes: endpoints, socket } = yield* resolve(
        {
          url: "https://user:pass@a.example/v2/0123456789abcdef?key=fedcba98765",
          urls: ["env:NODE", "https://b.example", "https://b.example"],
          ws_url: "env:SOCKET",
        },
        { "env:NODE": " https://c.example/secretkey\n", "env:SOCKET": "wss://d.example/secretkey" },
      )
      assert.strictEqual(socket!.label, "env:SOCKET")
      assert.deepStrictEqual(socket!.secrets, ["secretkey", "d.example", "d.example"])
      assert.deepStrictEqual(
        endpoints.map(({ label }) => label),
        ["a.example", "env:NODE", "b.example"],
      )
      assert.deepStrictEqual(endpoints[0]!.secrets, ["user", "pass", "0123456789abcdef", "fedcba98765"])
      assert.include(endpoints[1]!.secrets, "c.example")
      assert.strictEqual(Redacted.value(endpoints[1]!.url).href, "https://c.example/secretkey")
    }),
  )

  it.effect("that cannot be resolved are refused by the name of the reference", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(resolve({ urls: ["https://a.example", "env:NONE"], ws_url: "env:NEITHER" }))
      assert.match(missing.message, /urls\.1: secret env:NONE.*; ws_url: secret env:NEITHER/)
      const noSocket = yield* Effect.flip(resolve({ ws_url: "env:NODE" }, { "env:NODE": "https://a.example/hunter2" }))
      assert.match(noSocket.message, /ws_url: the secret env:NODE does not hold a ws:\/\/ or wss:\/\/ URL/)
      assert.notInclude(noSocket.message, "hunter2")
      const noUrl = yield* Effect.flip(resolve({ url: "env:NODE" }, { "env:NODE": "hunter2" }))
      assert.include(noUrl.message, "env:NODE")
      assert.notInclude(noUrl.message, "hunter2")
    }),
  )
})
