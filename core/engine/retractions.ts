import { Clock, Effect, Fiber, type Scope, type Tracer } from "effect"
import { type AttemptPolicy, byDefinition, Probation } from "../pipeline/attempt-policy.ts"
import { beforeAll, Draining } from "../pipeline/draining.ts"
import { untilStored } from "../pipeline/persist.ts"
import { makeSettler, type Settler } from "../pipeline/settler.ts"
import type { SinkHandle } from "../pipeline/sink-handle.ts"
import { makeSinkWorker } from "../pipeline/sink-worker.ts"
import type { WorkItem } from "../pipeline/work-item.ts"
import { presentSpan } from "../plugin/tracing.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { DeliveryRow } from "../storage/storage.ts"
import type { Sending } from "./sending.ts"

type Fault = StorageError | NotOwner

/** Rows of one page when retractions are read back. */
const PAGE = 256

/**
 * For whom retractions are sent while no pipeline runs.
 *
 * - `rewind`: a network that takes something back waits for them. What is owed to a durable buffer is left to its worker.
 * - `rest`: a network rests. They are sent as a pipeline would send them, and nothing waits for them.
 * - `deletion`: a network is about to go, with its rows: each sink gets the chance that it gets in a rewind.
 */
export type RetractionsOf = "rewind" | "rest" | "deletion"

/** What becomes of the dead ones when nobody was waited for without end. */
const BEHIND = {
  rewind:
    "they are kept as dead letters: the receiver still holds what they take back; offerRetractions sends them once it " +
    "answers again",
  deletion: "they go with the network: the receiver still holds what they take back",
}

/** Why a sink's retractions die unsent: nobody is there to hear them, and nobody waits until somebody is. */
const refusalOf = (of: RetractionsOf, sink: string, { isMissing, error }: SinkHandle): string | null => {
  if (of === "rest") return null
  if (isMissing) return `permanent: sink ${sink} does not exist`
  return error !== null && of === "deletion" ? `permanent: sink ${sink} is FAILED: ${error}` : null
}

/** Sends the retractions that a network owes, all sinks at once. What was left is gone on with by another one. */
export interface Retractions {
  /** Ends when all are sent or dead; with `rest`, when it is left. Answers whether it got to its end. */
  readonly send: Effect.Effect<boolean, Fault, Scope.Scope>
  /** No further one is sent; attempts that have begun are finished. */
  readonly leave: Effect.Effect<void>
}

export const makeRetractions = (options: Sending, of: RetractionsOf): Retractions => {
  const { network, ownership, storage, status, metrics } = options
  const { owner, lease } = ownership
  const draining = new Draining()
  /** Of the rewind that the retractions are a part of. */
  let span: Tracer.AnySpan | null = null
  const toItem = (row: DeliveryRow): WorkItem => ({ row, slot: null, span })

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
      readsOwed: of === "rest",
      refusal: (handle) => refusalOf(of, sink, handle),
      toItem,
      beforePull: Effect.void,
    })
  })

  /** Sends for as long as it takes. */
  const sendInRest = Effect.fnUntraced(function* (sink: string, settler: Settler) {
    const worker = yield* workerFor(sink, settler, byDefinition, options.sinkHandle(sink).isDurable)
    yield* Effect.raceFirst(worker.run, Effect.andThen(Effect.andThen(draining.begun, worker.end), Effect.never))
  })

  const sendTo = Effect.fnUntraced(function* (sink: string, settler: Settler) {
    if (of === "rest") return yield* sendInRest(sink, settler)
    if (of === "rewind" && options.sinkHandle(sink).isDurable) return
    let dead = 0
    const counting: Settler = {
      ...settler,
      trySettle: (unit) => {
        const taken = settler.trySettle(unit)
        if (taken) dead += unit.filter(({ outcome }) => outcome.state === "dead").length
        return taken
      },
    }
    const worker = yield* workerFor(sink, counting, new Probation(), false)
    const feed = Effect.gen(function* () {
      let afterSeq = 0
      while (!draining.isBegun) {
        const rows = yield* storage
          .owed(network, sink, { kind: "retracted", afterSeq, limit: PAGE })
          .pipe(untilStored(status))
        if (rows.length === 0) break
        afterSeq = rows.at(-1)!.seq
        yield* worker.enqueue(rows.map(toItem))
      }
      yield* worker.end
    })
    // Once the worker has given up, nobody takes what would still be fed.
    yield* worker.toldOfStandstill(Effect.raceFirst(worker.run, Effect.andThen(feed, Effect.never)))
    if (dead === 0) return
    yield* Effect.logError(`retractions that are dead: ${dead}; ${BEHIND[of]}`).pipe(Effect.annotateLogs({ sink }))
  })

  return {
    send: Effect.gen(function* () {
      if (of === "rewind") span = yield* presentSpan
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
