import { Effect } from "effect"
import type { ChainStats } from "../chain.ts"
import { contend } from "../contender.ts"
import type { Growth, LiveTimes } from "../live-head.ts"
import { CHAIN_ID } from "../made-chain.ts"
import { monitor, startRuntime, TENTH } from "../runtime.ts"

/** Follows a chain that grows, with one match a block that goes to a webhook, and measures how long each takes. */
export interface LiveTask {
  readonly url: string
  readonly database: string
  readonly growth: Growth
  readonly pollMs: number
  /** Whether the node's WebSocket announces the blocks. */
  readonly announced: boolean
}

/** What following a chain measured, and what the node was asked for meanwhile. */
export interface LiveRun extends LiveTimes {
  readonly stats: ChainStats
}

const follow = Effect.fnUntraced(function* ({ url, database, growth, pollMs, announced }: LiveTask) {
  const network = {
    id: "live",
    module: "evm-rpc",
    config: {
      chain_id: CHAIN_ID,
      url,
      ...(announced ? { ws_url: url.replace("http:", "ws:") } : {}),
      confirmations: 0,
      start: "latest",
      poll_interval_ms: pollMs,
    },
  }
  const sink = { id: "hook", module: "webhook", config: { url: `${url}/hook` } }
  const runtime = yield* startRuntime(database, [network], [sink])
  yield* runtime.putMonitor(monitor("live", "hook", TENTH))
  yield* runtime.reached("live", growth.from)
  const ask = <A>(path: string, method = "GET") =>
    Effect.promise(async () => (await (await fetch(url + path, { method })).json()) as A)
  yield* ask("/", "DELETE")
  const times = yield* ask<LiveTimes>(`/mine?listeners=${announced ? 1 : 0}`)
  const run: LiveRun = { ...times, stats: yield* ask<ChainStats>("/") }
  return run
})

await contend((task: LiveTask) => Effect.runPromise(Effect.scoped(follow(task))))
