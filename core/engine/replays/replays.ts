import { Effect, Exit, Fiber, Latch, Option, type Scope, Semaphore } from "effect"
import { deliveryId, type Match, matchBody, type SinkEvent } from "../../model/sink-event.ts"
import type { AttemptPolicy } from "../../pipeline/attempt-policy.ts"
import { deliverWithRetry, type DeliveryResult } from "../../pipeline/delivery.ts"
import { Draining } from "../../pipeline/draining.ts"
import { untilStored } from "../../pipeline/persist.ts"
import type { SinkHandle } from "../../pipeline/sink-handle.ts"
import type { NotOwner, StorageError } from "../../storage/error.ts"
import type { DeadLetterRow, NoReplay } from "../../storage/dead-letter.ts"
import { ACTIONS, type EventTerms } from "../../storage/events.ts"
import type { Outcome } from "../../storage/storage.ts"
import { noReplay } from "../../storage/tuples/dead-letter.ts"
import type { Sending } from "../sending.ts"
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

/**
 * The replays of a network, for as long as this process owns it. A letter stays one until its replay has an outcome: what is
 * cut off on the way, by a crash too, leaves it as it was.
 */
export interface Replays {
  /**
   * Sends a dead letter again when it is its turn at its sink: one at a time, and none while they rest. What becomes of it
   * does not depend on the caller.
   */
  readonly send: (letter: Letter, policy: AttemptPolicy) => Effect.Effect<Replayed, Fault>
  /** Whether the replay of a row has begun and is not over. */
  readonly isUnderWay: (seq: number) => boolean
  /**
   * Runs what takes letters away. It is given those of them whose replay is not under way; none of these is sent before it
   * ended.
   */
  readonly holding: <A, E>(
    seqs: ReadonlyArray<number>,
    take: (held: ReadonlyArray<number>) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** No replay begins any more, and one that waits for another attempt ends. */
  readonly leave: () => void
  /**
   * The same, and waits until none is under way: an attempt that has begun may take so long, in ms; then it is given up.
   */
  readonly rest: (deadlineMs: number) => Effect.Effect<void>
  /** Ends the rest. */
  readonly resume: () => void
  /** The same as `leave`, for good: those that wait for their turn are told at once. */
  readonly end: () => void
}

const GIVEN_UP: DeliveryResult = { _tag: "GivenUp", attempts: 0 }

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

const retractionFirst = (sink: string): string =>
  `sink "${sink}" is still owed a retraction of this match, from before it was found again; replay it when that is sent`

const eventOf = (payload: string): SinkEvent => ({ type: "match", ...(JSON.parse(payload) as Match) })

export const makeReplays = Effect.fnUntraced(function* (
  options: Sending,
): Effect.fn.Return<Replays, never, Scope.Scope> {
  const { network, storage, status, metrics } = options
  const { owner, lease } = options.ownership
  const scope = yield* Effect.scope
  const turns = new Map<string, Semaphore.Semaphore>()
  const underWay = new Set<number>()
  const holds = new Set<{ readonly seqs: ReadonlySet<number>; readonly over: Latch.Latch }>()
  const idle = Latch.makeUnsafe(true)
  const resumed = Latch.makeUnsafe(true)
  let resting = false
  let isEnded = false
  let period = newPeriod()

  const turnAt = (sink: string): Semaphore.Semaphore => {
    const turn = turns.get(sink) ?? Semaphore.makeUnsafe(1)
    turns.set(sink, turn)
    return turn
  }

  const cutShort =
    `network "${network}" had to stop, to take something back, or to make way for a change of sinks or monitors before ` +
    `the sink answered; the dead letter is kept as it was: replay it again`

  const stopped = `network "${network}" stops; what was not sent is a dead letter as before: replay it again when it runs`

  const ended = `network "${network}" stopped, or began anew, before this was over; look at its dead letters again when it runs`

  /** The attempts, with the sink as it is configured at the time. */
  const attempts = Effect.fnUntraced(function* (
    letter: DeadLetterRow,
    payload: string,
    handle: SinkHandle,
    policy: AttemptPolicy,
    { draining }: Period,
  ): Effect.fn.Return<DeliveryResult> {
    // The same on each attempt of this replay, so that the receiver can tell these from another replay.
    const nonce = crypto.randomUUID()
    const delivery = { id: deliveryId(letter.matchId, letter.life, letter.kind), body: matchBody(payload), nonce }
    const event = eventOf(payload)
    const trace = { network, sink: letter.sink }
    while (!draining.isBegun) {
      const { runtime, changed } = handle
      const retry = runtime === null || handle.paused !== null ? null : policy.next(runtime)
      if (runtime === null || retry === null) return GIVEN_UP
      const onRetry = (reason: string, attempt: number) => {
        metrics.count("failedAttempts", 1, { sink: letter.sink })
        return Effect.logWarning(`replay failed (attempt ${attempt} of ${retry.maxAttempts}): ${reason}`)
      }
      const end = yield* Effect.raceFirst(
        deliverWithRetry(runtime.sink, event, delivery, { trace, retry, earlier: 0, lease, draining, onRetry }),
        Effect.as(changed, "changed" as const),
      )
      if (end === "changed") continue
      // Before anything is written: that may take long, and the sink be another by then.
      const failure = end._tag === "Dead" ? end.failure : null
      if (failure?._tag === "Permanent" && failure.gone === true && handle.runtime === runtime) {
        yield* options.onGone(letter.sink, failure.reason)
      }
      return end
    }
    return GIVEN_UP
  })

  const write = (letter: DeadLetterRow, outcome: Omit<Outcome, "seq">, events?: EventTerms) =>
    storage.replayed(owner, { seq: letter.seq, ...outcome }, events).pipe(
      untilStored(status),
      Effect.tap((written) =>
        Effect.sync(() => {
          if (written) metrics.count("deliveries", 1, { sink: letter.sink, kind: letter.kind, outcome: outcome.state })
        }),
      ),
    )

  const taken: Replayed = { _tag: "Refused", why: "NOT_FOUND" }

  /** Sends a letter, and writes what came of it. */
  const deliver = Effect.fnUntraced(function* (
    letter: DeadLetterRow,
    payload: string,
    policy: AttemptPolicy,
    during: Period,
  ): Effect.fn.Return<Replayed, Fault> {
    const { sink } = letter
    const handle = options.sinkHandle(sink)
    const given = Effect.as(during.givesUp.await, GIVEN_UP)
    const result = yield* Effect.raceFirst(attempts(letter, payload, handle, policy, during), given)
    policy.ended(result)
    if (result._tag === "GivenUp") return { _tag: "Left", reason: sinkRefusal(sink, handle) ?? cutShort }
    const tried = letter.attempts + result.attempts
    if (result._tag === "Delivered") {
      const written = yield* write(letter, { state: "delivered", attempts: tried, reason: null })
      if (!written) {
        yield* Effect.logWarning("a replay was delivered whose letter was taken away meanwhile")
        return taken
      }
      yield* Effect.logInfo("a dead letter was delivered by a replay")
      return { _tag: "Delivered" }
    }
    if (!(yield* write(letter, { state: "dead", attempts: tried, reason: result.reason }))) return taken
    yield* Effect.logWarning(`a replay failed, the dead letter is kept: ${result.reason}`)
    return { _tag: "Dead" }
  })

  /** Lets a letter of the sink `actions` be heard: its event is stored with its outcome. */
  const emit = Effect.fnUntraced(function* (
    letter: DeadLetterRow,
    events: EventTerms,
  ): Effect.fn.Return<Replayed, Fault> {
    const { attempts: tried } = letter
    if (!(yield* write(letter, { state: "delivered", attempts: tried, reason: null }, events))) return taken
    yield* Effect.logInfo("a dead letter became an event of the program's actions by a replay")
    return { _tag: "Delivered" }
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
    const letter = yield* storage.deadLetter(network, seq)
    if (letter === null) return taken
    const why = noReplay(letter)
    if (why !== null) return { _tag: "Refused", why }
    // Its receiver would take the match back that the replay brings, for the id is the same.
    if (letter.life > 1 && (yield* storage.isRetractionOwed(letter))) {
      return { _tag: "Left", reason: retractionFirst(sink) }
    }
    const acts = sink === ACTIONS && options.events !== undefined
    const replaying = acts ? emit(letter, options.events) : deliver(letter, letter.payload!, policy, during)
    return yield* replaying.pipe(Effect.annotateLogs({ network, sink, monitor: letter.monitor, match: letter.matchId }))
  })

  const whenAllowed = (letter: Letter, policy: AttemptPolicy): Effect.Effect<Replayed, Fault> =>
    Effect.suspend((): Effect.Effect<Replayed, Fault> => {
      if (isEnded) return Effect.succeed({ _tag: "Left", reason: stopped })
      if (resting) return Effect.andThen(resumed.await, whenAllowed(letter, policy))
      const { seq } = letter
      const hold = holds.values().find(({ seqs }) => seqs.has(seq))
      if (hold !== undefined) return Effect.andThen(hold.over.await, whenAllowed(letter, policy))
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
    holding: (seqs, take) =>
      Effect.suspend(() => {
        const held = seqs.filter((seq) => !underWay.has(seq))
        const hold = { seqs: new Set(held), over: Latch.makeUnsafe(false) }
        holds.add(hold)
        return Effect.ensuring(
          take(held),
          Effect.sync(() => {
            holds.delete(hold)
            hold.over.openUnsafe()
          }),
        )
      }),
    leave,
    rest: Effect.fnUntraced(function* (deadlineMs: number) {
      leave()
      const { givesUp } = period
      const inTime = yield* Effect.timeoutOption(idle.await, deadlineMs)
      if (Option.isNone(inTime)) givesUp.openUnsafe()
      yield* idle.await
    }),
    resume: () => {
      if (!resting || isEnded) return
      period = newPeriod()
      resting = false
      resumed.openUnsafe()
    },
    end: () => {
      isEnded = true
      leave()
      resumed.openUnsafe()
    },
  }
})
