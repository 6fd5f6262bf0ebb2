import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ReceivedSpan, spansOf } from "../support/otlp.ts"
import { startServe, temporaryFolder, writeFiles } from "../support/process.ts"
import { respond, startReceiver } from "../support/receiver.ts"
import { waitForCheckpoint } from "./network.ts"
import { CHAIN_ID, startTokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 120_000

describe("traces of a server", () => {
  it.live(
    "lead from the block to each attempt of its webhooks, and what is left is sent at the stop",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const chain = yield* startTokenChain
        const receiver = yield* startReceiver()
        const collector = yield* startReceiver()
        const start = (yield* chain.head) + 1
        yield* writeFiles(folder, {
          "networks/net.json": {
            id: "net",
            module: "evm-rpc",
            config: { chain_id: CHAIN_ID, urls: [chain.url], confirmations: 0, start, poll_interval_ms: 50 },
          },
          "monitors/all.json": { id: "all", network: "net", selector: transferSelector, sinks: ["hook"] },
          "sinks/hook.json": {
            id: "hook",
            module: "webhook",
            config: { url: receiver.origin },
            retry: { max_attempts: 3, initial_backoff_ms: 1, max_backoff_ms: 2 },
          },
        })
        const server = yield* startServe(
          { DATABASE_URL: "memory:", SEEDS_DIR: folder },
          {
            env: {
              OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
              OTEL_EXPORTER_OTLP_HEADERS: "x-key=hunter%202",
              OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
              // Not before the end.
              OTEL_BSP_SCHEDULE_DELAY: "600000",
            },
          },
        )
        receiver.next(respond(503))
        yield* chain.mine([7, 11])
        yield* waitForCheckpoint(server.url, "net", start)
        assert.strictEqual(yield* server.stop, 0)

        assert.lengthOf(receiver.requests, 3)
        for (const { path, headers } of collector.requests) {
          assert.strictEqual(path, "/v1/traces")
          assert.strictEqual(headers["x-key"], "hunter 2")
        }
        assert.notInclude(server.output.stdout + server.output.stderr, "hunter")
        assert.include(server.output.stdout, `traces   ${collector.origin}/v1/traces`)

        const spans = spansOf(collector.requests)
        const byId = new Map(spans.map((span) => [span.spanId, span]))
        const parentOf = ({ parentSpanId }: ReceivedSpan) => byId.get(parentSpanId ?? "")!
        const attempts = receiver.requests.map(({ headers }) => {
          const [, trace, span] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(headers["traceparent"] ?? "")!
          const attempt = byId.get(span!)!
          assert.strictEqual(attempt.traceId, trace)
          return attempt
        })
        assert.deepStrictEqual(
          attempts.map(({ failed, attributes }) => [
            failed,
            attributes["http.response.status_code"],
            attributes["blockwatcher.delivery.attempt"],
          ]),
          [
            [true, 503, 1],
            [false, 200, 2],
            [false, 200, 1],
          ],
        )
        for (const [i, attempt] of attempts.entries()) {
          assert.strictEqual(attempt.name, "deliver")
          assert.strictEqual(attempt.attributes["blockwatcher.sink"], "hook")
          assert.strictEqual(
            attempt.attributes["blockwatcher.delivery.id"],
            receiver.requests[i]!.headers["idempotency-key"],
          )
          const mint = parentOf(attempt)
          assert.deepStrictEqual([mint.name, mint.attributes["blockwatcher.matches"]], ["mint", 2])
          const match = parentOf(mint)
          assert.deepStrictEqual([match.name, match.attributes["blockwatcher.events"]], ["match", 2])
          const read = parentOf(match)
          assert.strictEqual(read.name, "read blocks")
          assert.isNull(read.parentSpanId)
          assert.deepInclude(read.attributes, {
            "blockwatcher.network": "net",
            "blockwatcher.block.from": start,
            "blockwatcher.block.to": start,
          })
          assert.strictEqual(read.traceId, attempt.traceId)
          assert.deepInclude(read.resource, {
            "service.name": "blockwatcher",
            "deployment.environment.name": "test",
          })
        }
      }),
    TIMEOUT_MS,
  )
})
