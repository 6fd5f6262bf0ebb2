import { Clock, Deferred, Effect, Exit, Fiber, Latch, Option, type Scope, Semaphore } from "effect"
import { deliveryId, type Match, matchBody, type SinkEvent } from "../../model/sink-event.ts"
import type { AttemptPolicy } from "../../pipeline/attempt-policy.ts"
import { deliverWithRetry, type DeliveryResult } from "../../pipeline/delivery.ts"
import { Draining } from "../../pipeline/draining.ts"
import type { NetworkMetrics } from "../../pipeline/metrics.ts"
import { untilStored } from "../../pipeline/persist.ts"
import type { SinkHandle } from "../../pipeline/sink-handle.ts"
import type { PipelineStatus } from "../../pipeline/status.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { DeadLetterRow, DeliveryRow, NoReplay, Outcome, Storage } from "../../storage/storage.ts"
import type { Ownership } from "../ownership.ts"
import { sinkRefusal } from "./sink-refusal.ts"

type Fault = StorageError | NotOwner

/** What names a dead letter here. */
export type Letter = Pick<DeadLetterRow, "seq" | "sink">

/** How the replay of a dead letter ended. */
export type Replayed =
  /** The letter is gone. */
  | { readonly _tag: "Delivered" }
  /** It is kept, with the new reason and all its attempts. */
  | { readonly _tag: "Dead" }
  /** No outcome: it is kept as it was. */
  | { readonly _tag: "Left"; readonly reason: string }
  /** It is no letter that can be sent. */
  | { readonly _tag: "Refused"; readonly why: NoReplay | "NOT_FOUND" }

/** The replays of a network, for as long as this process owns it. */
export interface Replays {
  /**
   * Sends a dead letter again when it is its turn at its sink: one at a time, and none while they rest. What becomes of it
   * does not depend on the caller.
   */
  readonly send: (letter: Letter, policy: AttemptPolicy) => Effect.Effect<Replayed, Fault>
  /** Whether the replay of a row has begun and is not over. */
  readonly isUnderWay: (seq: number) => boolean
  /**
   * Whether a row is, or was since the last `forget`, that of a replay: who reads owed rows leaves it out, also if it was
   * read just before the replay was over.
   */
  readonly isReplaying: (seq: number) => boolean
  /** No reader of rows is left that read them before now. */
  readonly forget: () => void
  /** No replay begins any more, and one that waits for another attempt ends. */
  readonly leave: () => void
  /**
   * The same, and waits until none is under way: an attempt that has begun may take so long, in ms; then it is given up, and
   * its letter is written back as it was.
   */
  readonly rest: (deadlineMs: number) => Effect.Effect<void>
  /** Ends the rest. */
  readonly resume: () => void
  /** Fails with what kept an outcome from being written. */
  readonly fault: Effect.Effect<never, Fault>
}

const GIVEN_UP: DeliveryResult = { _tag: "GivenUp" }

/** What lies between two rests. */
interface Period {
  readonly draining: Draining
  readonly givesUp: Latch.Latch
}

const newPeriod = (): Period => ({
  draining: new Draining(),
  givesUp: Latch.makeUnsafe(false),
})

const sinkDown = (sink: string): string =>
  `sink "${sink}" is down: the letters before this one used up their attempts; replay the rest when it answers again`

const eventOf = ({ payload }: DeliveryRow): SinkEvent => ({ type: "match", ...(JSON.parse(payload) as Match) })

export const makeReplays = Effect.fnUntraced(function* (options: {
  readonly network: string
  readonly ownership: Ownership
  readonly storage: Storage["Service"]
  readonly status: PipelineStatus
  readonly metrics: NetworkMetrics
  readonly sinkHandle: (sink: string) => SinkHandle
  /** Is told that a sink's receiver is gone. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
}): Effect.fn.Return<Replays, never, Scope.Scope> {
  const { network, storage, status, metrics } = options
  const { owner, lease } = options.ownership
  const scope = yield* Effect.scope
  const fault = yield* Deferred.make<never, Fault>()
  const turns = new Map<string, Semaphore.Semaphore>()
  const underWay = new Set<number>()
  /** Grows by a number a replay, until the pipeline is opened anew. */
  let known = new Set<number>()
  const idle = Latch.makeUnsafe(true)
  const resumed = Latch.makeUnsafe(true)
  let resting = false
  let period = newPeriod()

  const turnAt = (sink: string): Semaphore.Semaphore => {
    const turn = turns.get(sink) ?? Semaphore.makeUnsafe(1)
    turns.set(sink, turn)
    return turn
  }

  const cutShort =
    `network "${network}" had to stop, to take something back, or to make way for a change of sinks or monitors before ` +
    `the sink answered; the dead letter is kept as it was: replay it again`

  const ended = `network "${network}" stopped, or began anew, before this was over; look at its dead letters again when it runs`

  /** The attempts, with the sink as it is configured at the time. */
  const attempts = Effect.fnUntraced(function* (
    row: DeliveryRow,
    handle: SinkHandle,
    policy: AttemptPolicy,
    { draining }: Period,
  ): Effect.fn.Return<DeliveryResult> {
    // The same on each attempt of this replay, so that the receiver can tell these from another replay.
    const nonce = crypto.randomUUID()
    const delivery = { id: deliveryId(row.matchId, row.life, row.kind), body: matchBody(row.payload), nonce }
    const event = eventOf(row)
    while (!draining.isBegun) {
      const { runtime, changed } = handle
      const retry = runtime === null || handle.paused !== null ? null : policy.next(runtime)
      if (runtime === null || retry === null) return GIVEN_UP
      const onRetry = (reason: string, attempt: number) => {
        metrics.count("failedAttempts", 1, { sink: row.sink })
        return Effect.logWarning(`replay failed (attempt ${attempt} of ${retry.maxAttempts}): ${reason}`)
      }
      const end = yield* Effect.raceFirst(
        deliverWithRetry(runtime.sink, event, delivery, { retry, lease, draining, onRetry }),
        Effect.as(changed, "changed" as const),
      )
      if (end === "changed") continue
      // Before anything is written: that may take long, and the sink be another by then.
      const failure = end._tag === "Dead" ? end.failure : null
      if (failure?._tag === "Permanent" && failure.gone === true && handle.runtime === runtime) {
        yield* options.onGone(row.sink, failure.reason)
      }
      return end
    }
    return GIVEN_UP
  })

  /** What is not known to be written leaves a row owed, maybe: a pipeline that is built anew from the rows sees to it. */
  const stored = <A>(change: Effect.Effect<A, Fault>) =>
    change.pipe(
      untilStored(status),
      Effect.tapError((error) => Deferred.fail(fault, error)),
    )

  const write = Effect.fnUntraced(function* (row: DeliveryRow, outcome: Outcome, isNews: boolean) {
    yield* stored(storage.settle(owner, { outcomes: [outcome], offered: [] }))
    if (isNews) metrics.settled([{ item: { row, slot: null }, outcome }], yield* Clock.currentTimeMillis)
  })

  /** Sends the row that a letter has become, and writes what came of it. */
  const deliver = Effect.fnUntraced(function* (
    row: DeliveryRow,
    before: DeadLetterRow,
    policy: AttemptPolicy,
    during: Period,
  ): Effect.fn.Return<Replayed, Fault> {
    const { seq, sink } = row
    const handle = options.sinkHandle(sink)
    const given = Effect.as(during.givesUp.await, GIVEN_UP)
    const result = yield* Effect.raceFirst(attempts(row, handle, policy, during), given)
    policy.ended(result)
    if (result._tag === "GivenUp") {
      yield* write(row, { seq, state: "dead", attempts: before.attempts, reason: before.reason }, false)
      return { _tag: "Left", reason: sinkRefusal(sink, handle) ?? cutShort }
    }
    const tried = { seq, attempts: before.attempts + result.attempts }
    if (result._tag === "Delivered") {
      yield* write(row, { ...tried, state: "delivered", reason: null }, true)
      yield* Effect.logInfo("a dead letter was delivered by a replay")
      return { _tag: "Delivered" }
    }
    yield* write(row, { ...tried, state: "dead", reason: result.reason }, true)
    yield* Effect.logWarning(`a replay failed, the dead letter is kept: ${result.reason}`)
    return { _tag: "Dead" }
  })

  const replay = Effect.fnUntraced(function* (
    { seq, sink }: Letter,
    policy: AttemptPolicy,
    during: Period,
  ): Effect.fn.Return<Replayed, Fault> {
    const handle = options.sinkHandle(sink)
    const refusal = sinkRefusal(sink, handle)
    if (refusal !== null) return { _tag: "Left", reason: refusal }
    if (policy.next(handle.runtime!) === null) return { _tag: "Left", reason: sinkDown(sink) }
    const before = yield* storage.deadLetter(network, seq)
    if (before === null) return { _tag: "Refused", why: "NOT_FOUND" }
    // Before the row is owed: whoever reads it then knows that it is not to be sent.
    known.add(seq)
    const row = yield* stored(storage.replay(owner, seq))
    if (typeof row === "string") return { _tag: "Refused", why: row }
    return yield* deliver(row, before, policy, during).pipe(
      Effect.annotateLogs({ network, sink, monitor: row.monitor, match: row.matchId }),
    )
  })

  const whenAllowed = (letter: Letter, policy: AttemptPolicy): Effect.Effect<Replayed, Fault> =>
    Effect.suspend(() => {
      if (resting) return Effect.andThen(resumed.await, whenAllowed(letter, policy))
      const { seq } = letter
      underWay.add(seq)
      idle.closeUnsafe()
      return Effect.ensuring(
        replay(letter, policy, period),
        Effect.sync(() => {
          underWay.delete(seq)
          if (underWay.size === 0) idle.openUnsafe()
        }),
      )
    })

  const leave = () => {
    resting = true
    resumed.closeUnsafe()
    period.draining.begin(null)
  }

  return {
    send: Effect.fnUntraced(function* (letter, policy) {
      const fiber = yield* Effect.forkIn(turnAt(letter.sink).withPermits(1)(whenAllowed(letter, policy)), scope)
      const exit = yield* Fiber.await(fiber)
      return Exit.hasInterrupts(exit) ? { _tag: "Left", reason: ended } : yield* exit
    }),
    isUnderWay: (seq) => underWay.has(seq),
    isReplaying: (seq) => known.has(seq),
    forget: () => {
      known = new Set(underWay)
    },
    leave,
    rest: Effect.fnUntraced(function* (deadlineMs: number) {
      leave()
      const { givesUp } = period
      const inTime = yield* Effect.timeoutOption(idle.await, deadlineMs)
      if (Option.isNone(inTime)) givesUp.openUnsafe()
      yield* idle.await
    }),
    resume: () => {
      if (!resting) return
      period = newPeriod()
      resting = false
      resumed.openUnsafe()
    },
    fault: Deferred.await(fault),
  }
})
