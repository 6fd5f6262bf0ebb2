import { Effect, Stream } from "effect"
import { endOf } from "../../../core/model/cursor.ts"
import { Egress } from "../../../core/plugin/egress.ts"
import { SourceRefused } from "../../../core/plugin/error.ts"
import { SourcePlugin } from "../../../core/plugin/source.ts"
import { evmAddress } from "../evm-rpc/address.ts"
import { resolveEndpoints } from "../evm-rpc/config.ts"
import { makeClient, makePace } from "../evm-rpc/rpc/client.ts"
import { makeProviders } from "../evm-rpc/rpc/providers.ts"
import { followSubscription } from "../evm-rpc/rpc/subscription.ts"
import { Announced } from "./announced.ts"
import { Config } from "./config.ts"
import { PendingFeed } from "./feed.ts"
import { runMempool } from "./run.ts"
import { describeSelector, Selector } from "./selector.ts"

/** Blocks are never asked for in ranges. */
const NO_RANGE = 1

/** Watches transactions and calls of an EVM chain while they wait to be mined. */
export default SourcePlugin.make({
  name: "evm-mempool",
  config: Config,
  selector: Selector,
  sensitive: ["url", "urls.*", "ws_url"],
  fixed: ["chain_id"],
  address: evmAddress,
  eventTime: false,
  resumable: false,
  describe: describeSelector,
  make: Effect.fn("evm-mempool.make")(function* (config) {
    const egress = yield* Egress
    const { nodes, socket } = yield* resolveEndpoints(config)
    const clients = nodes.map((endpoint) => makeClient(egress, endpoint, makePace(config.requests_per_second)))
    const providers = yield* makeProviders(clients, config.chain_id, NO_RANGE)
    return {
      start: Effect.as(providers.verify, endOf(0)),
      run: (run) => {
        if (socket === null) return runMempool(new PendingFeed(providers, null, config.poll_interval_ms), run)
        const announced = new Announced()
        return Effect.raceFirst(
          runMempool(new PendingFeed(providers, announced, config.poll_interval_ms), run),
          followSubscription(egress, socket, config.chain_id, announced),
        )
      },
      scan: () =>
        Stream.fail(
          new SourceRefused({ reason: "evm-mempool cannot read the past: nobody keeps what was pending; use evm-rpc" }),
        ),
    }
  }),
})
