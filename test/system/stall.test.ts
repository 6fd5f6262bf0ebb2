import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../server/devnet/simulated/node.ts"
import { addressOf, transfer, TRANSFER } from "../../server/devnet/simulated/transfer.ts"
import { startServe, temporaryFolder, waitFor, writeFiles } from "../support/process.ts"
import { respond, startReceiver } from "../support/receiver.ts"
import { faultsOf } from "./deliveries.ts"
import { checkpointOf, networkNow, waitForCheckpoint } from "./network.ts"

const TIMEOUT_MS = 300_000

const TOKEN = 1
const WATCHED = 2
const OTHER = 3

/** The block that is watched first. */
const FIRST = 1

/** So many transfers to an address in one block. */
const transfers = (to: number, count: number) => Array.from({ length: count }, () => transfer(TOKEN, 4, to, 1))

/** Logs that match, enough to fill every queue on the way to the sink. */
const FILLING = { blocks: 14, logs: 100 }

/**
 * What the chain goes on with, few of which match: first until everything that holds a batch holds one, then in earnest.
 * After each step the quick network catches up, which keeps batches small on a machine of any speed.
 */
const FLOOD = { warmUp: 60, blocks: 240, step: 5, logs: 400 }

/** With a small heap garbage is collected early, so that what is kept can be told from it. */
const HEAP_MB = 200

/** What the garbage collector may leave lying about; the logs of the flood would be several times as much. */
const MOST_GROWTH = 40_000_000

const sink = (id: string, url: string) => ({ id, module: "webhook", config: { url } })

describe("a webhook that takes 2 seconds to answer", () => {
  it.live(
    "stalls its network alone, in bounded memory, and loses nothing",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const chain = new SimulatedChain()
        const node = yield* simulatedNode(chain)
        const [slow, quick] = [yield* startReceiver(), yield* startReceiver()]
        slow.always(respond(200, { afterMs: 2_000 }))
        const network = (id: string) => ({
          id,
          module: "evm-rpc",
          config: {
            chain_id: 1,
            urls: [node.url],
            confirmations: 0,
            start: FIRST,
            poll_interval_ms: 50,
            max_block_range: 10,
          },
        })
        const monitor = (id: string) => ({
          id,
          network: id,
          selector: { kind: "event", event: TRANSFER },
          predicate: `args.to == "${addressOf(WATCHED)}"`,
          sinks: [id],
        })
        yield* writeFiles(folder, {
          "networks/slow.json": network("slow"),
          "networks/quick.json": network("quick"),
          "monitors/slow.json": monitor("slow"),
          "monitors/quick.json": monitor("quick"),
          "sinks/slow.json": sink("slow", slow.origin),
          "sinks/quick.json": sink("quick", quick.origin),
        })
        const { url, residentBytes, stop } = yield* startServe(
          { DATABASE_URL: `sqlite:${folder}/rows.db`, SEEDS_DIR: folder },
          { env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` } },
        )

        chain.mine(FILLING.blocks, transfers(WATCHED, FILLING.logs))
        yield* waitForCheckpoint(url, "quick", chain.head.number)
        const full = yield* waitFor("the network is full", networkNow(url, "slow"), (now) => now.inFlightEvents > 1_000)
        assert.isBelow(checkpointOf(full), FIRST + 1)

        const flooding = [...transfers(WATCHED, 1), ...transfers(OTHER, FLOOD.logs - 1)]
        /** Answers the least memory held during the second half: garbage comes and goes, what is kept stays. */
        const flood = Effect.fnUntraced(function* (blocks: number) {
          let least = Number.POSITIVE_INFINITY
          for (let block = FLOOD.step; block <= blocks; block += FLOOD.step) {
            chain.mine(FLOOD.step, flooding)
            yield* waitForCheckpoint(url, "quick", chain.head.number)
            if (block > blocks / 2) least = Math.min(least, yield* residentBytes)
          }
          return least
        })
        const warm = yield* flood(FLOOD.warmUp)
        assert.isBelow((yield* flood(FLOOD.blocks)) - warm, MOST_GROWTH)
        const head = chain.head.number
        const stalled = yield* networkNow(url, "slow")
        assert.isAtMost(stalled.inFlightEvents, FILLING.blocks * FILLING.logs)
        assert.isBelow(checkpointOf(stalled), FIRST + 1)
        assert.strictEqual(stalled.state, "RUNNING")

        slow.always(respond(200))
        const well = yield* waitForCheckpoint(url, "slow", head)
        assert.strictEqual(well.inFlightEvents, 0)
        assert.strictEqual(yield* stop, 0)
        const watched = transfer(TOKEN, 4, WATCHED, 1).topics[2]
        const expected = chain.canonicalLogs(FIRST).filter(({ log }) => log.topics[2] === watched)
        assert.lengthOf(expected, FILLING.blocks * FILLING.logs + FLOOD.warmUp + FLOOD.blocks)
        for (const [monitor, { requests }] of [
          ["slow", slow],
          ["quick", quick],
        ] as const) {
          assert.deepStrictEqual(
            faultsOf(
              requests,
              expected.map((transfer) => ({ monitor, ...transfer })),
            ),
            [],
          )
          assert.lengthOf(requests, expected.length)
        }
      }),
    TIMEOUT_MS,
  )
})
