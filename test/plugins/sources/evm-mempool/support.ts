import { Effect } from "effect"
import type { HostSink, SinkEvent } from "../../../../core/index.ts"
import evmMempool from "../../../../plugins/sources/evm-mempool/index.ts"
import { startRuntime } from "../../../support/runtime.ts"

/** The event of a match, as a sink is told it. */
export type ToldEvent = Readonly<Record<string, any>>

/** A sink that keeps what it is told. */
export class Told {
  readonly events: Array<ToldEvent> = []
  readonly ids: Array<string> = []
  readonly sink: HostSink = {
    id: "told",
    deliver: (event: SinkEvent) =>
      Effect.sync(() => {
        if (event.type !== "match") return
        this.events.push(event.event)
        this.ids.push(event.id)
      }),
  }

  get hashes(): ReadonlyArray<string> {
    return this.events.map(({ transaction }) => transaction.hash)
  }
}

/** Watches the mempool of a node with monitors of these selectors. */
export const watchMempool = Effect.fnUntraced(function* (options: {
  readonly urls: ReadonlyArray<string>
  readonly wsUrl?: string
  readonly pollMs?: number
  readonly chainId: number
  readonly selectors: Readonly<Record<string, unknown>>
  readonly told: Told
  readonly path?: string
}) {
  const { told, selectors, chainId, urls, wsUrl, pollMs = 20, path } = options
  const config = {
    chain_id: chainId,
    urls,
    poll_interval_ms: pollMs,
    ...(wsUrl === undefined ? {} : { ws_url: wsUrl }),
  }
  return yield* startRuntime({
    ...(path === undefined ? {} : { path }),
    plugins: [evmMempool],
    resources: {
      networks: [{ id: "pool", module: "evm-mempool", config }],
      monitors: Object.entries(selectors).map(([id, selector]) => ({
        id,
        network: "pool",
        selector,
        sinks: [told.sink.id],
      })),
      sinks: [told.sink],
    },
  })
})
