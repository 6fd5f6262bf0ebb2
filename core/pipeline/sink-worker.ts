import { Cause, Clock, Deferred, Effect, Exit, FiberSet } from "effect"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { DeliveryRow } from "../storage/storage.ts"
import { InFlight } from "./in-flight.ts"
import { Intake } from "./intake.ts"
import { OpenBatch } from "./open-batch.ts"
import { untilStored } from "./persist.ts"
import { secondsOf } from "./status.ts"
import { type Unit, withoutLeft } from "./unit.ts"
import { makeUnitRunner, type UnitRunnerOptions } from "./unit-runner.ts"
import type { WorkItem } from "./work-item.ts"

/** Delivers a network's rows to one sink, in `seq` order. */
export interface SinkWorker {
  /** Hands rows over in `seq` order; waits while too many wait: this is the back-pressure of a slow sink. */
  readonly enqueue: (items: ReadonlyArray<WorkItem>) => Effect.Effect<void>
  /** Lets a wait for the sink be seen, should it get long, with what the sink is at. */
  readonly told: <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The same for a wait that may be long while all is well: it counts anew from each outcome. */
  readonly toldOfStandstill: <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Hands over rows from before that are owed again; waits for nothing. */
  readonly enqueueAgain: (items: ReadonlyArray<WorkItem>) => void
  /** Whether it reads its rows from the database by itself: it is woken instead of handed them. */
  readonly pulls: boolean
  /** Says that rows were minted for it to read. */
  readonly wake: () => void
  /** Completes when the owed rows of earlier runs are read, or need not be waited for. */
  readonly readBack: Effect.Effect<void>
  /** Whether it has nothing to do. */
  readonly isIdle: () => boolean
  /** How many rows may be minted offered, because it would begin with them at once; null when it never does. */
  readonly room: () => number | null
  /** Works until interrupted; after `end`, until its rows are done or an attempt fails. */
  readonly run: Effect.Effect<void, StorageError | NotOwner>
  /** No row follows. */
  readonly end: Effect.Effect<void>
}

export interface SinkWorkerOptions extends UnitRunnerOptions {
  /** The rows that it reads; all unless set. */
  readonly kind?: DeliveryRow["kind"]
  /** Whether owed rows of earlier runs are to be read first. */
  readonly readsOwed: boolean
  /** An owed row as it is delivered. */
  readonly toItem: (row: DeliveryRow) => WorkItem
  /** Runs before rows are pulled. */
  readonly beforePull: Effect.Effect<void, StorageError | NotOwner>
}

type Fault = StorageError | NotOwner

/** The most rows that are marked offered in one commit before their attempts. */
const CHUNK = 64

export const makeSinkWorker = (options: SinkWorkerOptions): SinkWorker => {
  const { sink, handle, isDurable, storage, owner, status, draining } = options
  const runner = makeUnitRunner(options)
  const kind = options.kind === undefined ? {} : { kind: options.kind }
  const intake = new Intake<Fault>(
    (page) => storage.owed(owner.network, sink, { ...page, ...kind }).pipe(untilStored(status)),
    isDurable ? "pulled" : options.readsOwed ? "owed" : "handed",
    options.toItem,
  )
  const batch = new OpenBatch()
  const inFlight = new InFlight()
  let waiting = true
  let gaveUp = false

  /** Says of a wait for the sink, should it get long, what it is for. */
  const toldSince = <A, E>(wait: Effect.Effect<A, E>, since: (begin: number) => number): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const begin = options.clock.currentTimeMillisUnsafe()
      status.waits.set(sink, {
        get since() {
          return since(begin)
        },
        reason: (now) =>
          runner.heldUpBy(now) ?? `it has not taken what was found for ${secondsOf(now - since(begin))} s`,
      })
      return Effect.ensuring(
        wait,
        Effect.sync(() => status.waits.delete(sink)),
      )
    })

  const told = <A, E>(wait: Effect.Effect<A, E>) => toldSince(wait, (begin) => begin)

  const limit = () => handle.runtime?.concurrency ?? 1

  /** What the sink's matches are gathered by at present: nothing, if they are refused. */
  const aggregate = () => (handle.paused === null || isDurable ? (handle.runtime?.aggregate ?? null) : null)

  const hasMore = () => !intake.isEmpty || !batch.isEmpty

  const isIdle = () => waiting && inFlight.isEmpty && !hasMore()

  const deliver = (units: ReadonlyArray<Unit>) =>
    Effect.map(runner.run(units, hasMore), (goesOn) => {
      if (!goesOn) gaveUp = true
    })

  const work = Effect.fnUntraced(function* (fork: (delivering: Effect.Effect<void, Fault>) => Effect.Effect<unknown>) {
    /** Delivers units in their order, as many beside each other as the sink takes. */
    const execute = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
      if (units.length === 0) return
      if (limit() === 1) {
        if (!inFlight.isEmpty) yield* inFlight.untilNone()
        return yield* deliver(units)
      }
      // In one commit; a throttle lets them in one by one.
      if (handle.paused === null && handle.runtime?.throttle === null) {
        yield* runner.offer(units.flatMap((unit) => withoutLeft(unit, draining) ?? []))
      }
      for (const unit of units) {
        yield* inFlight.begin(unit, limit)
        const end = Effect.sync(() => inFlight.end(unit))
        if (gaveUp) return yield* end
        yield* fork(Effect.ensuring(deliver([unit]), end))
      }
    })

    /** Waits until it is known how the sink is to be served; false when the pipeline drains before. */
    const untilKnown: Effect.Effect<boolean> = Effect.suspend(() => {
      const { runtime, changed, paused, error } = handle
      if (runner.refusal() !== null || (paused === null && runtime !== null)) return Effect.succeed(true)
      if (!isDurable) status.sinks.set(sink, error ?? "it is being built")
      return Effect.raceFirst(Effect.as(changed, true), Effect.as(draining.begun, false)).pipe(
        Effect.tap(() => Effect.sync(() => status.sinks.delete(sink))),
        Effect.flatMap((goesOn) => (goesOn ? untilKnown : Effect.succeed(false))),
      )
    })

    const gather = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
      const by = aggregate()
      if (by === null && batch.isEmpty) return units
      const now = yield* Clock.currentTimeMillis
      const due = batch.restMs(by, now) === 0 ? batch.flush() : []
      return [...due, ...batch.gather(units, by, now)]
    })

    /** Waits until the open batch is due, and sends it; or until it may have grown, or the sink has changed. */
    const untilDue = Effect.gen(function* () {
      const { changed } = handle
      const rest = batch.restMs(aggregate(), yield* Clock.currentTimeMillis)
      if (rest === 0) return yield* execute(batch.flush())
      yield* Effect.raceFirst(Effect.timeoutOption(intake.arrival, rest), changed)
    })

    while (!gaveUp) {
      // What a durable buffer holds may be more than any drain can wait for.
      if (intake.pulls && draining.isBegun) break
      if (!intake.isEmpty) {
        // Who waits until earlier runs' rows are read does not wait for the sink.
        yield* intake.pulls ? options.beforePull : intake.fill()
        gaveUp = !(yield* untilKnown)
        if (gaveUp) break
        if (intake.pulls) yield* intake.fill()
        const units = intake.take(CHUNK)
        if (units.length > 0) yield* execute(yield* gather(units))
      } else if (intake.isEnded) {
        break
      } else if (batch.isEmpty) {
        waiting = true
        yield* intake.arrival
        waiting = false
      } else {
        yield* untilDue
      }
    }
    if (!gaveUp) yield* execute(batch.flush())
    yield* inFlight.untilNone()
  })

  return {
    enqueue: (items) => intake.hand(items),
    told,
    toldOfStandstill: (wait) => toldSince(wait, (begin) => Math.max(begin, runner.lastOutcomeAt())),
    enqueueAgain: (items) => intake.handAgain(items),
    pulls: intake.pulls,
    wake: () => intake.wake(),
    readBack: told(intake.readBack),
    isIdle,
    room: () => {
      const { runtime, paused } = handle
      if (runtime === null || paused !== null || isDurable) return null
      if (runtime.throttle !== null || runtime.aggregate !== null) return null
      return isIdle() ? intake.capacity : 0
    },
    run: Effect.gen(function* () {
      const broken = yield* Deferred.make<never, Fault>()
      const fibers = yield* FiberSet.make<void, Fault>()
      const fork = (delivering: Effect.Effect<void, Fault>) =>
        FiberSet.run(
          fibers,
          Effect.onExit(delivering, (exit) =>
            Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
              ? Deferred.failCause(broken, exit.cause)
              : Effect.void,
          ),
        )
      yield* Effect.raceFirst(work(fork), Deferred.await(broken))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          intake.close()
          status.sinks.delete(sink)
        }),
      ),
    ),
    end: Effect.sync(() => intake.end()),
  }
}
