import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { Blockwatcher, layerSqlite } from "blockwatcher"
import evmRpc from "blockwatcher/plugins/evm-rpc"

const url = process.argv[2] ?? "http://127.0.0.1:8545"

const runtime = Blockwatcher.layer({
  storage: layerSqlite({ path: ":memory:" }),
  plugins: [evmRpc],
  resources: {
    networks: [{ id: "devnet", module: "evm-rpc", config: { chain_id: 31337, urls: [url], confirmations: 0 } }],
    monitors: [
      {
        id: "transfers",
        network: "devnet",
        selector: {
          kind: "event",
          event: "event Transfer(address indexed from, address indexed to, uint256 value)",
        },
        predicate: "args.value > 0",
        sinks: ["mine"],
      },
    ],
    sinks: [{ id: "mine", deliver: (event) => Effect.log(event) }],
  },
})

NodeRuntime.runMain(Layer.launch(runtime))
