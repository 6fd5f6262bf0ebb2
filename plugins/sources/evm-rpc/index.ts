import { Effect } from "effect"
import { Egress } from "../../../core/plugin/egress.ts"
import { SourcePlugin } from "../../../core/plugin/source.ts"
import { evmAddress } from "./address.ts"
import { makeChain } from "./chain.ts"
import { Config, resolveEndpoints } from "./config.ts"
import { HeadHints } from "./head-hints.ts"
import { headListener } from "./head-subscription.ts"
import { makeClient, makePace } from "./rpc/client.ts"
import { makeProviders } from "./rpc/providers.ts"
import { followSubscription } from "./rpc/subscription.ts"
import { runChain } from "./run.ts"
import { scanChain } from "./scan.ts"
import { describeSelector, Selector } from "./selector.ts"
import { resolveStart } from "./start.ts"

/** Watches events, calls, transactions and blocks of an EVM chain over the JSON-RPC of its nodes. */
export default SourcePlugin.make({
  name: "evm-rpc",
  config: Config,
  selector: Selector,
  sensitive: ["url", "urls.*", "ws_url"],
  fixed: ["chain_id"],
  address: evmAddress,
  describe: describeSelector,
  make: Effect.fn("evm-rpc.make")(function* (config) {
    const egress = yield* Egress
    const { nodes, socket } = yield* resolveEndpoints(config)
    const clients = nodes.map((endpoint) => makeClient(egress, endpoint, makePace(config.requests_per_second)))
    const providers = yield* makeProviders(clients, config.chain_id, config.max_block_range)
    const chain = makeChain(providers)
    return {
      start: resolveStart(chain, providers, config),
      run: (run) => {
        const hints = new HeadHints()
        const running = runChain(chain, providers, config, hints, run)
        return socket === null
          ? running
          : Effect.raceFirst(running, followSubscription(egress, socket, config.chain_id, headListener(hints)))
      },
      scan: (range) => scanChain(chain, providers, config, range),
    }
  }),
})
