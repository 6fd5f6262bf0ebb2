import { Deferred, Effect } from "effect"
import { contend, startClock } from "../contender.ts"
import type { ChainSize } from "../made-chain.ts"
import { network, startRuntime, strangers } from "../runtime.ts"

/**
 * A network whose monitors no log concerns. They watch so many addresses that nodes are not asked by address: every log
 * comes, and finds nobody. The clock starts when the network may, with everything compiled that is compiled when written.
 */
export interface StrangersTask extends ChainSize {
  readonly url: string
  readonly range: number
  readonly database: string
  readonly monitors: number
  /** Addresses of each monitor. */
  readonly addresses: number
}

const watch = Effect.fnUntraced(function* (task: StrangersTask) {
  const { url, range, database, monitors, addresses, blocks, logsPerBlock } = task
  const go = yield* Deferred.make<void>()
  const runtime = yield* startRuntime(
    database,
    [network("made", url, range)],
    [{ id: "count", deliver: () => Effect.void }],
    strangers("made", "count", monitors, addresses),
    Deferred.await(go),
  )
  const read = startClock()
  yield* Deferred.succeed(go, undefined)
  yield* runtime.reached("made", blocks)
  return read(blocks * logsPerBlock)
})

await contend((task: StrangersTask) => Effect.runPromise(Effect.scoped(watch(task))))
