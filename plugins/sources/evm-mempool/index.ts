import { Effect, Stream } from "effect"
import { endOf } from "../../../core/model/cursor.ts"
import { Egress } from "../../../core/plugin/egress.ts"
import { SourceRefused } from "../../../core/plugin/error.ts"
import { SourcePlugin } from "../../../core/plugin/source.ts"
import { evmAddress } from "../evm-rpc/address.ts"
import { resolveEndpoints } from "../evm-rpc/config.ts"
import { makeClient, makePace } from "../evm-rpc/rpc/client.ts"
import { makeProviders } from "../evm-rpc/rpc/providers.ts"
import { Config } from "./config.ts"
import { makePendingFeed } from "./feed.ts"
import { Recent } from "../evm-rpc/recent.ts"
import { runMempool } from "./run.ts"
import { describeSelector, Selector } from "./selector.ts"

/** Hashes of transactions that were handed over, so that each is handed over once. */
const REMEMBERED = 200_000

/** Blocks are never asked for in ranges. */
const NO_RANGE = 1

/** Watches transactions and calls of an EVM chain while they wait to be mined. */
export default SourcePlugin.make({
  name: "evm-mempool",
  config: Config,
  selector: Selector,
  sensitive: ["url", "urls.*"],
  fixed: ["chain_id"],
  address: evmAddress,
  eventTime: false,
  resumable: false,
  describe: describeSelector,
  make: Effect.fn("evm-mempool.make")(function* (config) {
    const egress = yield* Egress
    const { nodes } = yield* resolveEndpoints(config)
    const clients = nodes.map((endpoint) => makeClient(egress, endpoint, makePace(config.requests_per_second)))
    const providers = yield* makeProviders(clients, config.chain_id, NO_RANGE)
    return {
      start: Effect.as(providers.verify, endOf(0)),
      run: (run) => runMempool(makePendingFeed(providers, new Recent(REMEMBERED)), config, run),
      scan: () =>
        Stream.fail(
          new SourceRefused({ reason: "evm-mempool cannot read the past: nobody keeps what was pending; use evm-rpc" }),
        ),
    }
  }),
})
