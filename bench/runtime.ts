import { Context, Effect, Layer, References, Stream } from "effect"
import { Blockwatcher, Feed, type HostSink, layerSqlite, Resources } from "../core/index.ts"
import evmRpc from "../plugins/sources/evm-rpc/index.ts"
import webhook from "../plugins/sinks/webhook/index.ts"
import { CHAIN_ID, RARE, TOKEN } from "./made-chain.ts"

const EVENT = "event Transfer(address indexed from, address indexed to, uint256 value)"

/** A predicate that holds for one of ten logs. */
export const TENTH = "args.value % 10 == 0"

/** A predicate that the made chain seldom fulfils. */
export const RARELY = `args.value >= ${RARE.value}`

export const network = (id: string, url: string, range: number) => ({
  id,
  module: "evm-rpc",
  config: { chain_id: CHAIN_ID, url, confirmations: 0, start: 1, max_block_range: range },
})

export const monitor = (network: string, sink: string, predicate?: string, address: string = TOKEN) => ({
  id: `${network}-transfers`,
  network,
  selector: { kind: "event", address: [address], event: EVENT },
  sinks: [sink],
  ...(predicate === undefined ? {} : { predicate }),
})

/** The address of a monitor that no log of a made chain concerns. */
const strangerOf = (nth: number): string => `0x${(2 ** 40 + nth).toString(16).padStart(40, "0")}`

/** So many monitors of so many addresses each, none of which has logs. */
export const strangers = (network: string, sink: string, count: number, addresses: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `${network}-stranger-${i}`,
    network,
    selector: {
      kind: "event",
      address: Array.from({ length: addresses }, (_, j) => strangerOf(i * addresses + j)),
      event: EVENT,
    },
    sinks: [sink],
  }))

/** Starts a runtime on a database file; its networks rest until they get a monitor, and until `startAfter` is over. */
export const startRuntime = Effect.fnUntraced(function* (
  path: string,
  networks: ReadonlyArray<object>,
  sinks: ReadonlyArray<object | HostSink>,
  monitors: ReadonlyArray<object> = [],
  startAfter: Effect.Effect<void> = Effect.void,
) {
  const runtime = yield* Layer.build(
    Blockwatcher.layer({
      storage: layerSqlite({ path }),
      plugins: [evmRpc, webhook],
      resources: { networks, sinks, monitors },
      startAfter,
      // Nothing is pruned: the rows are read back afterwards, to be inserted by hand.
      settings: { drainTimeoutMs: 100, journalDepth: 1_000_000 },
    }),
  ).pipe(Effect.provideService(References.MinimumLogLevel, "Error"))
  const resources = Context.get(runtime, Resources)
  const feed = Context.get(runtime, Feed)
  return {
    putMonitor: resources.putMonitor,
    /** Waits until the durable checkpoint of a network is at the end of a block. */
    reached: (network: string, block: number) =>
      feed.checkpoints(network).pipe(
        Stream.takeUntil(({ cursor }) => cursor.primary >= block),
        Stream.runDrain,
      ),
    inFlight: (id: string) =>
      Effect.map(resources.networks, (networks) => networks.find((network) => network.id === id)?.inFlightEvents ?? 0),
  }
})
