import { Effect } from "effect"
import { contend, residentBytes, startClock } from "../contender.ts"
import type { ChainSize } from "../made-chain.ts"
import { monitor, network, RARELY, startRuntime } from "../runtime.ts"

/**
 * A network with a predicate that rarely holds, alone or beside one that stands still: every log of that one matches, and
 * its sink takes two seconds for each.
 */
export interface StalledTask extends ChainSize {
  readonly url: string
  readonly range: number
  readonly database: string
  /** The node of the network that stands still; null to run alone. */
  readonly beside: string | null
}

/** The network that stands still: resident sets in bytes, with a few seconds between them. */
export interface Stall {
  readonly rssAtStart: number
  readonly rssAtEnd: number
  readonly inFlight: number
}

const ANSWERS_AFTER = "2 seconds"
const STANDS_STILL_MS = 1000
const STALL = "4 seconds"

const watch = Effect.fnUntraced(function* (task: StalledTask) {
  const { url, range, database, beside, blocks, logsPerBlock } = task
  const networks = [network("free", url, range), ...(beside === null ? [] : [network("stalled", beside, range)])]
  const runtime = yield* startRuntime(database, networks, [
    { id: "fast", deliver: () => Effect.void },
    { id: "slow", deliver: () => Effect.sleep(ANSWERS_AFTER) },
  ])
  const stall = Effect.gen(function* () {
    yield* runtime.putMonitor(monitor("stalled", "slow"))
    // Full is what does not grow any more; the sink meanwhile takes away at most one event.
    let before = -1
    let inFlight = 0
    while (inFlight === 0 || inFlight > before) {
      before = inFlight
      yield* Effect.sleep(STANDS_STILL_MS)
      inFlight = yield* runtime.inFlight("stalled")
    }
    const rssAtStart = residentBytes()
    yield* Effect.sleep(STALL)
    const stalled: Stall = { rssAtStart, rssAtEnd: residentBytes(), inFlight }
    return stalled
  })
  const stalled = beside === null ? null : yield* stall
  const read = startClock()
  yield* runtime.putMonitor(monitor("free", "fast", RARELY))
  yield* runtime.reached("free", blocks)
  return { ...read(blocks * logsPerBlock), stalled }
})

await contend((task: StalledTask) => Effect.runPromise(Effect.scoped(watch(task))))
