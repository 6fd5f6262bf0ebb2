import { Clock, Effect, Fiber, type Scope } from "effect"
import { type AttemptPolicy, byDefinition, Probation } from "../pipeline/attempt-policy.ts"
import { beforeAll, Draining } from "../pipeline/draining.ts"
import type { NetworkMetrics } from "../pipeline/metrics.ts"
import { untilStored } from "../pipeline/persist.ts"
import { makeSettler, type Settler } from "../pipeline/settler.ts"
import type { SinkHandle } from "../pipeline/sink-handle.ts"
import { makeSinkWorker } from "../pipeline/sink-worker.ts"
import type { PipelineStatus } from "../pipeline/status.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { Storage } from "../storage/storage.ts"
import type { Ownership } from "./ownership.ts"

type Fault = StorageError | NotOwner

/** Rows of one page when retractions are read back. */
const PAGE = 256

export interface RetractionOptions {
  readonly network: string
  readonly ownership: Ownership
  readonly storage: Storage["Service"]
  readonly status: PipelineStatus
  readonly metrics: NetworkMetrics
  readonly sinkHandle: (sink: string) => SinkHandle
  /** Is told that a sink's receiver is gone for good; pauses the sink at once. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
}

/**
 * For whom retractions are sent while no pipeline runs.
 *
 * - `rewind`: a network that takes something back waits for them. What is owed to a durable buffer is left to its worker.
 * - `rest`: a network rests. Those of durable buffers are sent without end, and nothing waits for them.
 * - `deletion`: a network is about to go, with its rows: each sink gets the chance that it gets in a rewind.
 */
export type RetractionsOf = "rewind" | "rest" | "deletion"

/** Sends the retractions that a network owes, all sinks at once. Can be begun again at any time. */
export interface Retractions {
  /** Ends when all are sent or dead; with `rest`, when it is left. Answers whether it got to its end. */
  readonly send: Effect.Effect<boolean, Fault, Scope.Scope>
  /** No further one is sent; attempts that have begun are finished. */
  readonly leave: Effect.Effect<void>
}

export const makeRetractions = (options: RetractionOptions, of: RetractionsOf): Retractions => {
  const { network, ownership, storage, status, metrics } = options
  const { owner, lease } = ownership
  const draining = new Draining()

  /** Nobody is there to hear it: kept as dead letters, for the case that somebody is again. */
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

  const workerFor = Effect.fnUntraced(function* (
    sink: string,
    settler: Settler,
    policy: AttemptPolicy,
    isDurable: boolean,
  ) {
    return makeSinkWorker({
      sink,
      handle: options.sinkHandle(sink),
      isDurable,
      storage,
      owner,
      lease,
      metrics,
      status,
      settler,
      draining,
      policy,
      clock: yield* Clock.Clock,
      onGone: options.onGone,
      kind: "retracted",
      readsOwed: false,
      toItem: (row) => ({ row, slot: null }),
      beforePull: Effect.void,
    })
  })

  /** Sends a durable buffer's for as long as it takes. */
  const sendInRest = Effect.fnUntraced(function* (sink: string, settler: Settler) {
    const worker = yield* workerFor(sink, settler, byDefinition, true)
    yield* Effect.raceFirst(worker.run, Effect.andThen(Effect.andThen(draining.begun, worker.end), Effect.never))
  })

  const sendTo = Effect.fnUntraced(function* (sink: string, settler: Settler) {
    const { isDurable, isMissing, error } = options.sinkHandle(sink)
    if (of === "rest") return isDurable ? yield* sendInRest(sink, settler) : undefined
    if (isDurable && of === "rewind") return
    if (isMissing) return yield* keepFor(sink, `permanent: sink ${sink} does not exist`)
    if (error !== null && of === "deletion") return yield* keepFor(sink, `permanent: sink ${sink} is FAILED: ${error}`)
    const policy = new Probation()
    const worker = yield* workerFor(sink, settler, policy, false)
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
    yield* worker.toldOfStandstill(Effect.raceFirst(worker.run, Effect.andThen(feed, Effect.never)))
    if (policy.givenUp === 0) return
    const then =
      of === "deletion"
        ? "they go with the network: the receiver still holds what they take back"
        : "kept as dead letters: the receiver still holds what they take back; offerRetractions sends them once it " +
          "answers again"
    yield* Effect.logError(`${policy.givenUp} retractions were given up unsent, for the sink is down; ${then}`).pipe(
      Effect.annotateLogs({ sink }),
    )
  })

  return {
    send: Effect.gen(function* () {
      const settler = yield* makeSettler({ storage, owner, status, metrics, onWritten: () => {} })
      const settling = yield* Effect.forkScoped(settler.run)
      const sinks = yield* storage.owedSinks(network).pipe(untilStored(status))
      const sending = Effect.forEach(sinks, (sink) => sendTo(sink, settler), {
        concurrency: "unbounded",
        discard: true,
      }).pipe(Effect.andThen(of === "rest" ? draining.begun : Effect.void))
      yield* Effect.raceFirst(sending, Effect.andThen(Fiber.join(settling), Effect.never)).pipe(
        // What was told is written also when the rest is left, or it would be told again.
        Effect.ensuring(Effect.andThen(settler.end, Fiber.await(settling))),
      )
      yield* Fiber.join(settling)
      return !draining.isBegun
    }),
    leave: Effect.sync(() => draining.begin(beforeAll)),
  }
}
