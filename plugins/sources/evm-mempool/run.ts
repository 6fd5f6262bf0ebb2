import { Effect } from "effect"
import { endOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceOutcome, SourceRun } from "../../../core/plugin/source.ts"
import { eventsOf } from "./events.ts"
import type { PendingFeed } from "./feed.ts"
import type { PendingTransaction } from "./pending.ts"
import { compileRouting, type Routing } from "./routing.ts"
import type { Selector } from "./selector.ts"

/** Transactions of one batch. */
const BATCH = 1000

/**
 * Hands over pending transactions as they arrive, numbered from behind `resume`. A number is a place in this run's order
 * of arrival and nothing more: what was pending while nobody looked is not seen.
 */
export const runMempool = Effect.fnUntraced(function* (
  feed: PendingFeed,
  run: SourceRun<Selector>,
): Effect.fn.Return<SourceOutcome, SourceRefused> {
  let arrivals = run.resume.cursor.primary
  let routing: Routing | null = null

  const hand = Effect.fnUntraced(function* (pending: ReadonlyArray<PendingTransaction>) {
    const interests = yield* run.interests
    if (routing?.version !== interests.version) routing = compileRouting(interests)
    const { transactions, version } = routing
    const events = pending.flatMap((one) => eventsOf(one, ++arrivals, transactions))
    yield* run.head(endOf(arrivals))
    yield* run.emit({ events, upTo: endOf(arrivals), resume: [], interests: version })
  })

  let told: string | null = null
  const tell = (trouble: string | null) =>
    Effect.suspend(() => {
      if (trouble === told) return Effect.void
      told = trouble
      return run.trouble(trouble)
    })

  yield* run.head(endOf(arrivals))
  for (;;) {
    const pending = yield* feed.next
    for (let i = 0; i < pending.length; i += BATCH) yield* hand(pending.slice(i, i + BATCH))
    yield* tell(feed.trouble)
    yield* feed.wait
  }
})
