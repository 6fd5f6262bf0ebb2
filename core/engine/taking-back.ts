import { Effect, type Scope } from "effect"
import { type Cursor, formatCursor } from "../model/cursor.ts"
import { untilStored } from "../pipeline/persist.ts"
import { inSpan } from "../plugin/tracing.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Invalidation, Rewound } from "../storage/storage.ts"
import { makeRetractions } from "./retractions.ts"
import type { Sending } from "./sending.ts"

/** Matches that end in one transaction: keeps it to about 5 ms. */
const STEP = 100

/** What an invalidation does, in words. */
export const takingBackTo = (from: Cursor): string => `takes back everything behind ${formatCursor(from)}`

/** An invalidation under way. */
export interface TakingBack {
  /** Sends what is to be retracted, then rewinds; null when `leave` ended it before. Can be begun again at any time. */
  readonly run: Effect.Effect<Rewound | null, StorageError | NotOwner, Scope.Scope>
  /** No further retraction is sent; attempts that have begun are finished. */
  readonly leave: Effect.Effect<void>
}

/**
 * Carries out a recorded invalidation (semantics, 'Invalidation', steps 2 to 4): ends the matches behind `from`, sends
 * their retractions, all sinks at once, and moves the pipeline's row back. Each step stands in rows, so that it may be
 * left at any point and begun again.
 */
export const makeTakingBack = (
  options: Sending & {
    readonly journalDepth: number
    readonly invalidation: Invalidation
    readonly onShown: (feedPosition: number) => Effect.Effect<void>
  },
): TakingBack => {
  const { ownership, storage, status, metrics, invalidation } = options
  const { owner } = ownership
  const retractions = makeRetractions(options, "rewind")

  const endMatches = Effect.gen(function* () {
    let ended = 0
    while (true) {
      const step = yield* storage.retract(owner, STEP, options.events).pipe(untilStored(status))
      ended += step.matches
      metrics.count("ended", step.matches)
      if (step.shown > 0) yield* options.onShown(step.feedPosition)
      if (step.done) break
      yield* Effect.yieldNow
    }
    if (ended > 0) yield* Effect.logInfo(`${ended} matches have ended; sinks that may have heard of them are told`)
  })

  const run = Effect.gen(function* () {
    yield* endMatches
    if (!(yield* retractions.send)) return null
    const rewound = yield* storage.rewind(owner, options.journalDepth).pipe(untilStored(status))
    metrics.count("invalidations", 1)
    if (rewound.gap !== null) metrics.count("journalGap", 1)
    if (!rewound.moved) metrics.count("rewindsRefused", 1)
    yield* report(invalidation, rewound, options.journalDepth)
    return rewound
  })

  const span = () => ({
    parents: [],
    attributes: {
      "blockwatcher.network": options.network,
      "blockwatcher.cursor": formatCursor(invalidation.from),
      "blockwatcher.cause": invalidation.cause,
    },
  })

  return {
    run: inSpan("take back", span, () => run),
    leave: retractions.leave,
  }
}

const report = Effect.fnUntraced(function* ({ from }: Invalidation, { gap, moved, to }: Rewound, journalDepth: number) {
  if (gap !== null) {
    yield* Effect.logError(
      `journal gap: taken back to ${formatCursor(from)}, but from the checkpoint ${gap} the journal ` +
        `reaches back ${journalDepth} only: what was delivered before that is not retracted. A larger journal depth ` +
        `prevents it`,
    )
  }
  if (!moved) {
    yield* Effect.logInfo(`the checkpoint stays where it is: it is not behind ${formatCursor(from)}`)
  }
  yield* Effect.logInfo(
    `everything behind ${formatCursor(from)} is taken back${to === null ? "" : `; goes on from ${formatCursor(to)}`}`,
  )
})
