import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startServe, temporaryFolder, writeFiles } from "../support/process.ts"
import { respond, startReceiver } from "../support/receiver.ts"
import { faultsOf } from "./deliveries.ts"
import { waitForCheckpoint } from "./network.ts"
import { CHAIN_ID, startTokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 300_000

const DRAIN_MS = 3_000

/** What the end of the process may take beside the drain on a machine that is busy. */
const GRACE_MS = 10_000

const BLOCKS = 20
const TRANSFERS = [1, 2, 3, 4, 5]

const setUp = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const chain = yield* startTokenChain
  const receiver = yield* startReceiver()
  const first = (yield* chain.head) + 1
  yield* writeFiles(folder, {
    "networks/net.json": {
      id: "net",
      module: "evm-rpc",
      config: { chain_id: CHAIN_ID, urls: [chain.url], confirmations: 0, start: first, poll_interval_ms: 50 },
    },
    "monitors/all.json": { id: "all", network: "net", selector: transferSelector, sinks: ["hook"] },
    "sinks/hook.json": { id: "hook", module: "webhook", config: { url: receiver.origin } },
  })
  for (let block = 0; block < BLOCKS; block++) yield* chain.mine(TRANSFERS)
  const transfers = yield* chain.transfers(first)
  return {
    head: yield* chain.head,
    receiver,
    variables: {
      DATABASE_URL: `sqlite:${folder}/rows.db`,
      SEEDS_DIR: folder,
      DRAIN_TIMEOUT_MS: `${DRAIN_MS}`,
    },
    expected: transfers.map((transfer) => ({ monitor: "all", ...transfer })),
  }
})

describe.concurrent("SIGTERM during deliveries", () => {
  it.live(
    "ends with 0 once what is in flight is delivered, and the next start repeats nothing",
    () =>
      Effect.gen(function* () {
        const { head, receiver, variables, expected } = yield* setUp
        receiver.always(respond(200, { afterMs: 5 }))
        // On a machine that is busy the few deliveries may take longer than the other test's drain.
        const server = yield* startServe({ ...variables, DRAIN_TIMEOUT_MS: "60000" })
        yield* server.waitUntil("deliveries are under way", () => receiver.requests.length >= 5)
        assert.strictEqual(yield* server.stop, 0, server.output.stderr)
        assert.strictEqual(server.output.stderr, "")
        const again = yield* startServe(variables)
        yield* waitForCheckpoint(again.url, "net", head)
        assert.strictEqual(yield* again.stop, 0)
        assert.deepStrictEqual(faultsOf(receiver.requests, expected), [])
        assert.lengthOf(receiver.requests, expected.length)
      }),
    TIMEOUT_MS,
  )

  it.live(
    "ends with 0 at the deadline when a receiver keeps it waiting, and nothing is lost",
    () =>
      Effect.gen(function* () {
        const { head, receiver, variables, expected } = yield* setUp
        receiver.always((request) => (request.order < 3 ? respond(200) : { kind: "hang" }))
        const server = yield* startServe(variables)
        yield* server.waitUntil("a delivery hangs", () => receiver.requests.length >= 4)
        const askedAt = Date.now()
        assert.strictEqual(yield* server.stop, 0, server.output.stderr)
        const tookMs = Date.now() - askedAt
        assert.isAtLeast(tookMs, DRAIN_MS - 500)
        assert.isBelow(tookMs, DRAIN_MS + GRACE_MS)
        const answered = receiver.requests.slice(0, 3).map(({ headers }) => headers["webhook-id"])
        const before = receiver.requests.length

        receiver.always(respond(200))
        const again = yield* startServe(variables)
        yield* waitForCheckpoint(again.url, "net", head)
        assert.strictEqual(yield* again.stop, 0)
        assert.deepStrictEqual(faultsOf(receiver.requests, expected), [])
        const later = receiver.requests.slice(before).map(({ headers }) => headers["webhook-id"])
        assert.notIncludeMembers(later, answered)
        assert.strictEqual(later.length + answered.length, expected.length)
      }),
    TIMEOUT_MS,
  )
})
