import { Effect, Fiber, type Scope } from "effect"
import { type Cursor, formatCursor } from "../model/cursor.ts"
import { Probation } from "../pipeline/attempt-policy.ts"
import { beforeAll, Draining } from "../pipeline/draining.ts"
import { untilStored } from "../pipeline/persist.ts"
import type { NetworkMetrics } from "../pipeline/metrics.ts"
import { makeSettler } from "../pipeline/settler.ts"
import type { SinkHandle } from "../pipeline/sink-handle.ts"
import { makeSinkWorker } from "../pipeline/sink-worker.ts"
import type { PipelineStatus } from "../pipeline/status.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Invalidation, Rewound, Storage } from "../storage/storage.ts"
import type { Ownership } from "./ownership.ts"

/** Matches that end in one transaction: keeps it to about 5 ms. */
const STEP = 100

/** Rows of one page when retractions are read back. */
const PAGE = 256

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
export const makeTakingBack = (options: {
  readonly network: string
  readonly ownership: Ownership
  readonly storage: Storage["Service"]
  readonly status: PipelineStatus
  readonly metrics: NetworkMetrics
  readonly journalDepth: number
  readonly invalidation: Invalidation
  readonly sinkHandle: (sink: string) => SinkHandle
  /** Is told that a sink's receiver is gone for good; pauses the sink at once. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
  readonly onShown: (feedPosition: number) => Effect.Effect<void>
}): TakingBack => {
  const { network, ownership, storage, status, metrics, invalidation } = options
  const { owner, lease } = ownership
  const draining = new Draining()

  const endMatches = Effect.gen(function* () {
    let ended = 0
    while (true) {
      const step = yield* storage.retract(owner, STEP).pipe(untilStored(status))
      ended += step.matches
      metrics.count("ended", step.matches)
      if (step.shown > 0) yield* options.onShown(step.feedPosition)
      if (step.done) break
      yield* Effect.yieldNow
    }
    if (ended > 0) yield* Effect.logInfo(`${ended} matches have ended; sinks that may have heard of them are told`)
  })

  /** Nobody is there to hear it: kept as dead letters, for the case that the sink is made again. */
  const keepFor = Effect.fnUntraced(function* (sink: string, reason: string) {
    while (true) {
      const page = { kind: "retracted", afterSeq: 0, limit: PAGE } as const
      const rows = yield* storage.owed(network, sink, page).pipe(untilStored(status))
      if (rows.length === 0) return
      const outcomes = rows.map(({ seq, attempts }) => ({ seq, state: "dead", attempts, reason }) as const)
      yield* storage.settle(owner, { outcomes, offered: [] }).pipe(untilStored(status))
      metrics.count("deliveries", rows.length, { sink, kind: "retracted", outcome: "dead" })
    }
  })

  const sendTo = Effect.fnUntraced(function* (sink: string, settler: Effect.Success<ReturnType<typeof makeSettler>>) {
    const handle = options.sinkHandle(sink)
    // What is owed to a durable buffer is sent by its worker, in its turn.
    if (handle.isDurable) return
    if (handle.isMissing) return yield* keepFor(sink, `permanent: sink ${sink} does not exist`)
    const policy = new Probation()
    const worker = makeSinkWorker({
      sink,
      handle,
      isDurable: false,
      storage,
      owner,
      lease,
      metrics,
      status,
      settler,
      draining,
      policy,
      onGone: options.onGone,
      readsOwed: false,
      toItem: (row) => ({ row, slot: null }),
      beforePull: Effect.void,
    })
    const feed = Effect.gen(function* () {
      let afterSeq = 0
      while (!draining.isBegun) {
        const rows = yield* storage
          .owed(network, sink, { kind: "retracted", afterSeq, limit: PAGE })
          .pipe(untilStored(status))
        if (rows.length === 0) break
        afterSeq = rows.at(-1)!.seq
        yield* worker.enqueue(rows.map((row) => ({ row, slot: null })))
      }
      yield* worker.end
    })
    // Once the worker has given up, nobody takes what would still be fed.
    yield* Effect.raceFirst(worker.run, Effect.andThen(feed, Effect.never))
    if (policy.givenUp === 0) return
    yield* Effect.logError(
      `${policy.givenUp} retractions were given up unsent, for the sink is down; kept as dead letters: the receiver ` +
        `still holds what they take back; offerRetractions sends them once it answers again`,
    ).pipe(Effect.annotateLogs({ sink }))
  })

  const send = Effect.gen(function* () {
    const settler = yield* makeSettler({ storage, owner, status, metrics, onWritten: () => {} })
    const settling = yield* Effect.forkScoped(settler.run)
    const sinks = yield* storage.owedSinks(network).pipe(untilStored(status))
    const sending = Effect.forEach(sinks, (sink) => sendTo(sink, settler), { concurrency: "unbounded", discard: true })
    yield* Effect.raceFirst(sending, Effect.andThen(Fiber.join(settling), Effect.never)).pipe(
      // What was told is written also when the rest is left, or it would be told again.
      Effect.ensuring(Effect.andThen(settler.end, Fiber.await(settling))),
    )
    yield* Fiber.join(settling)
  })

  return {
    run: Effect.gen(function* () {
      yield* endMatches
      yield* send
      if (draining.isBegun) return null
      const rewound = yield* storage.rewind(owner, options.journalDepth).pipe(untilStored(status))
      metrics.count("invalidations", 1)
      if (rewound.gap !== null) metrics.count("journalGap", 1)
      if (!rewound.moved) metrics.count("rewindsRefused", 1)
      yield* report(invalidation, rewound, options.journalDepth)
      return rewound
    }),
    leave: Effect.sync(() => draining.begin(beforeAll)),
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
