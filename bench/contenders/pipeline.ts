import { Effect } from "effect"
import { contend, startClock } from "../contender.ts"
import type { ChainSize } from "../made-chain.ts"
import { monitor, network, RARELY, startRuntime } from "../runtime.ts"

/**
 * The whole way from the node to the durable checkpoint, in an SQLite file. The clock starts when the monitor is put,
 * which is what starts the source of a runtime that is up, and ends when the stored checkpoint is at the head.
 */
export interface PipelineTask extends ChainSize {
  readonly url: string
  readonly range: number
  readonly database: string
  /** Which logs match. With `quiet` the monitor watches an address that has none. */
  readonly matching: "rarely" | "all" | "quiet"
  /** Another chain that is watched first, off the clock, so that the code that is measured is compiled already. */
  readonly warmUp?: ChainSize & { readonly url: string }
}

const NOBODY = "0x00000000000000000000000000000000000000ff"

const monitorOf = (matching: PipelineTask["matching"], network: string) =>
  matching === "quiet"
    ? monitor(network, "count", undefined, NOBODY)
    : monitor(network, "count", matching === "all" ? undefined : RARELY)

const watch = Effect.fnUntraced(function* (task: PipelineTask) {
  const { url, range, database, matching, blocks, logsPerBlock, warmUp } = task
  let delivered = 0
  const deliver = () => Effect.sync(() => delivered++)
  const networks = [
    network("made", url, range),
    ...(warmUp === undefined ? [] : [network("warm-up", warmUp.url, range)]),
  ]
  const runtime = yield* startRuntime(database, networks, [{ id: "count", deliver }])
  if (warmUp !== undefined) {
    yield* runtime.putMonitor(monitorOf(matching, "warm-up"))
    yield* runtime.reached("warm-up", warmUp.blocks)
  }
  const read = startClock()
  yield* runtime.putMonitor(monitorOf(matching, "made"))
  yield* runtime.reached("made", blocks)
  return { ...read(blocks * logsPerBlock), delivered }
})

await contend((task: PipelineTask) => Effect.runPromise(Effect.scoped(watch(task))))
