import { Clock, Effect } from "effect"
import type { Throttle } from "../model/policy.ts"
import type { Sink } from "../plugin/sink.ts"
import type { NotOwner, StorageError } from "../storage/error.ts"
import type { DeliveryRow, Outcome, Owner, Storage } from "../storage/storage.ts"
import type { AttemptPolicy } from "./attempt-policy.ts"
import { deliverWithRetry, type DeliveryResult } from "./delivery.ts"
import type { Draining } from "./draining.ts"
import type { HeldLease } from "./lease.ts"
import type { NetworkMetrics } from "./metrics.ts"
import { untilStored } from "./persist.ts"
import type { Settlement, Settler } from "./settler.ts"
import type { SinkHandle, SinkRuntime } from "./sink-handle.ts"
import { type PipelineStatus, secondsOf } from "./status.ts"
import { type Reservation, throttledReason, ThrottleWindow } from "./throttle.ts"
import { halvesOf, isRetraction, nameOf, offersOf, spansOf, toSent, type Unit, withoutLeft } from "./unit.ts"

export interface UnitRunnerOptions {
  readonly sink: string
  readonly handle: SinkHandle
  /** Whether the rows are those of a durable buffer; another kind of buffer needs another worker. */
  readonly isDurable: boolean
  readonly storage: Storage["Service"]
  readonly owner: Owner
  readonly lease: HeldLease
  readonly metrics: NetworkMetrics
  readonly status: PipelineStatus
  readonly settler: Settler
  readonly draining: Draining
  readonly policy: AttemptPolicy
  readonly clock: Clock.Clock
  /** Why what is owed dies unsent at present, apart from a pause; unless set, it waits. */
  readonly refusal?: (handle: SinkHandle) => string | null
  /** Is told that the receiver is gone for good; pauses the sink at once. */
  readonly onGone: (sink: string, reason: string) => Effect.Effect<void>
}

/** Brings units to a sink as it is configured at the time. */
export interface UnitRunner {
  /** Writes what is to be written before units are sent. */
  readonly offer: (units: ReadonlyArray<Unit>) => Effect.Effect<void, StorageError | NotOwner>
  /**
   * Delivers units one after another, each until its outcome is handed over. A change of the sink interrupts it, and it
   * goes on from where it stood. Answers false when it gave up because the pipeline drains.
   *
   * @param more whether other units wait behind these
   */
  readonly run: (units: ReadonlyArray<Unit>, more: () => boolean) => Effect.Effect<boolean, StorageError | NotOwner>
  /** Why units are refused at present, if they are. */
  readonly refusal: () => string | null
  /** What holds up its units at a time in ms, in words; null while they go out. */
  readonly heldUpBy: (now: number) => string | null
  /** When the last unit had its outcome, in ms; 0 before the first. */
  readonly lastOutcomeAt: () => number
}

/** An attempt that takes this long, in ms, is what others wait for. */
const SLOW_MS = 2_000

/** Units on their way: those before `next` have their outcome. */
interface Run {
  units: Array<Unit>
  next: number
  /** How the next one ended, while there is no room to hand that over. */
  ended: ReadonlyArray<Settlement> | null
  readonly more: () => boolean
}

/** Which units may be sent now, up to `end`, and what the throttle let in for them. */
interface Admission {
  readonly end: number
  readonly throttle: Throttle | null
  readonly reservation: Reservation
}

type Dead = DeliveryResult & { readonly _tag: "Dead" }

/** A delivery that got no attempt, because those before it had shown that there is nobody to hear it. */
const SINK_DOWN: Dead = { _tag: "Dead", attempts: 0, reason: "transient: sink down", judged: false, failure: null }

/** Attempts that earlier runs made at a unit. */
const earlierOf = ({ items }: Unit): number => Math.max(...items.map(({ row }) => row.attempts))

export const makeUnitRunner = (options: UnitRunnerOptions): UnitRunner => {
  const { sink, handle, isDurable, storage, owner, lease, metrics, status, settler, draining, policy } = options
  const window = new ThrottleWindow()
  /** Deliveries under way: when their attempt began, in ms; null between two attempts, and while none may begin. */
  const underWay = new Set<{ since: number | null; readonly timeoutMs: number }>()
  let lastOutcomeAt = 0
  /** Why units are refused at present, which is told once. */
  let refusing: string | null = null

  const annotate = ({ items }: Unit) => {
    const { monitor, matchId } = items[0]!.row
    return Effect.annotateLogs(items.length === 1 ? { sink, monitor, match: matchId } : { sink, firstMatch: matchId })
  }

  /** A durable buffer's rows hold nobody up, but for those that came before the sink had one. */
  const showTrouble = (reason: string | null, { items }: Unit) => {
    const holdsUp = !isDurable || items.some(({ slot }) => slot !== null)
    if (reason === null || !holdsUp) status.sinks.delete(sink)
    else status.sinks.set(sink, reason)
  }

  const offer = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>) {
    for (const piece of offersOf(units)) {
      yield* storage.settle(owner, { outcomes: [], ...piece }).pipe(untilStored(status))
    }
    for (const unit of units) unit.write = "nothing"
  })

  const attempts = (unit: Unit, runtime: SinkRuntime): Effect.Effect<DeliveryResult> =>
    Effect.suspend(() => {
      const allowed = policy.next(runtime)
      if (allowed === null) return Effect.succeed(SINK_DOWN)
      const retry = isDurable ? { ...allowed, maxAttempts: Number.POSITIVE_INFINITY } : allowed
      const { event, delivery } = toSent(unit)
      const { timeoutMs } = runtime.sink
      const earlier = earlierOf(unit)
      const own: { since: number | null; readonly timeoutMs: number } = { since: null, timeoutMs }
      underWay.add(own)
      const watched: Sink = {
        timeoutMs,
        deliver: (event, delivery) => {
          own.since = options.clock.currentTimeMillisUnsafe()
          return runtime.sink.deliver(event, delivery)
        },
      }
      const onRetry = (reason: string, attempt: number) => {
        own.since = null
        showTrouble(reason, unit)
        metrics.count("failedAttempts", 1, { sink })
        const count = isDurable ? `attempt ${attempt}` : `attempt ${attempt} of ${retry.maxAttempts}`
        return Effect.logWarning(`${nameOf(unit)} failed (${count}): ${reason}`).pipe(annotate(unit))
      }
      const trace = { network: owner.network, sink, parents: () => spansOf(unit) }
      return deliverWithRetry(watched, event, delivery, { trace, retry, earlier, lease, draining, onRetry }).pipe(
        Effect.ensuring(Effect.sync(() => underWay.delete(own))),
      )
    })

  const refusal = (): string | null => {
    const { paused } = handle
    if (paused !== null && !isDurable) return `permanent: sink paused: ${paused}`
    return options.refusal?.(handle) ?? null
  }

  const heldUpBy = (now: number): string | null => {
    const all = [...underWay]
    const longest = now - Math.min(now, ...all.flatMap(({ since }) => since ?? []))
    if (longest >= SLOW_MS) return `an attempt has taken ${secondsOf(longest)} s so far`
    const resting = all.filter(({ since }) => since === null)
    if (resting.some(({ timeoutMs }) => !lease.covers(timeoutMs))) {
      return "no attempt begins, for too little is left of the lease"
    }
    return resting.length > 0 ? "an attempt has failed and is made again after a back-off" : null
  }

  /**
   * Hands over how a unit ended, and moves on, in one step: a change of the sink in between would leave a row without an
   * outcome, or complete its slot twice. One that comes while there is no room finds in the run what is still to be done.
   */
  const handOver = (run: Run): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (run.ended === null) return Effect.void
      if (!settler.trySettle(run.ended)) return Effect.andThen(settler.room, handOver(run))
      run.ended = null
      run.next++
      lastOutcomeAt = options.clock.currentTimeMillisUnsafe()
      return Effect.void
    })

  const finish = (run: Run, unit: Unit, outcomeOf: (row: DeliveryRow) => Outcome): Effect.Effect<void> => {
    run.ended = unit.items.map((item) => ({ item, outcome: outcomeOf(item.row) }))
    return handOver(run)
  }

  /** Lets units die without an attempt. */
  const refuse = Effect.fnUntraced(function* (run: Run, end: number, reason: string) {
    const units = run.units.slice(run.next, end)
    for (const unit of units) {
      yield* finish(run, unit, ({ seq, attempts }) => ({
        seq,
        state: "dead",
        attempts: attempts + unit.attempts,
        reason,
      }))
    }
    if (refusing === reason) return
    refusing = reason
    yield* Effect.logWarning(`deliveries become dead letters, unsent: ${reason}`).pipe(Effect.annotateLogs({ sink }))
  })

  /** Waits for a change of the sink, or a time; false when the pipeline drains. */
  const rest = (until: Effect.Effect<void>) =>
    Effect.raceFirst(Effect.as(until, true), Effect.as(draining.begun, false)).pipe(
      Effect.map((goesOn) => goesOn && !draining.isBegun),
    )

  /** Lets in what the throttle allows; null when nothing may be sent now. */
  const admit = Effect.fnUntraced(function* (run: Run, throttle: Throttle | null): Effect.fn.Return<Admission | null> {
    const { units, next } = run
    if (throttle === null) return { end: units.length, throttle, reservation: window.none }
    const now = yield* Clock.currentTimeMillis
    const left = window.left(throttle, now)
    let end = next
    let matches = 0
    for (; end < units.length; end++) {
      if (isRetraction(units[end]!)) continue
      if (matches === left) break
      matches++
    }
    if (end === next) return null
    return { end, throttle, reservation: matches === 0 ? window.none : window.reserve(throttle, matches, now) }
  })

  /** What follows from a match that the throttle does not let in; false when the pipeline drains. */
  const holdBack = Effect.fnUntraced(function* (run: Run, throttle: Throttle, changed: Effect.Effect<void>) {
    if (isDurable) {
      const change = Effect.raceFirst(changed, window.changed)
      const wait = window.waitMs(throttle, yield* Clock.currentTimeMillis)
      return yield* rest(Number.isFinite(wait) ? Effect.raceFirst(Effect.sleep(wait), change) : change)
    }
    let end = run.next
    while (end < run.units.length && !isRetraction(run.units[end]!)) end++
    metrics.count("throttled", end - run.next, { sink })
    yield* refuse(run, end, throttledReason(throttle))
    return true
  })

  const deliverUpTo = Effect.fnUntraced(function* (
    run: Run,
    admission: Admission,
    runtime: SinkRuntime,
  ): Effect.fn.Return<"goes on" | "given up", StorageError | NotOwner> {
    const { end, throttle, reservation } = admission
    while (run.next < end) {
      const unit = withoutLeft(run.units[run.next]!, draining)
      if (unit === null) {
        run.next++
        continue
      }
      const result = yield* attempts(unit, runtime)
      policy.ended(result)
      if (result._tag === "GivenUp") {
        yield* keepCount(unit, result.attempts)
        return "given up"
      }
      if (throttle !== null && result._tag === "Delivered" && !isRetraction(unit)) {
        window.spend(throttle, reservation, yield* Clock.currentTimeMillis)
      }
      const dead = result._tag === "Dead" ? result : null
      const gone = dead?.failure?._tag === "Permanent" && dead.failure.gone === true ? dead.failure : null
      if (gone !== null && isDurable) {
        // It rests with those behind it, until the sink is resumed.
        unit.attempts += result.attempts
        yield* options.onGone(sink, gone.reason)
        return "goes on"
      }
      if (dead?.failure?._tag === "TooLarge" && unit.items.length > 1) {
        run.units.splice(run.next, 1, ...halvesOf(unit, dead.attempts))
        return "goes on"
      }
      // The rows behind a delivery that used up its retries wait for the same sink.
      const waits = dead !== null && !dead.judged && (run.next + 1 < run.units.length || run.more())
      showTrouble(waits ? dead.reason : null, unit)
      const attempted = unit.attempts + result.attempts
      yield* finish(run, unit, (row) => ({
        seq: row.seq,
        state: dead === null ? "delivered" : "dead",
        attempts: row.attempts + attempted,
        reason: dead === null ? null : dead.reason,
      }))
      if (dead === null) {
        if (unit.items.length > 1) metrics.count("digests", 1, { sink })
        continue
      }
      if (dead !== SINK_DOWN) yield* tell(unit, earlierOf(unit) + attempted, dead.reason)
      if (gone !== null) {
        yield* options.onGone(sink, gone.reason)
        return "goes on"
      }
    }
    return "goes on"
  })

  /** Writes how often a unit was tried that stays owed: a sink that is down gets no more attempts by being drained often. */
  const keepCount = ({ items, attempts }: Unit, failed: number) => {
    if (attempts + failed === 0) return Effect.void
    const tried = items.map(({ row }) => ({ seq: row.seq, attempts: row.attempts + attempts + failed }))
    return storage.settle(owner, { outcomes: [], offered: [], tried }).pipe(untilStored(status))
  }

  const tell = (unit: Unit, attempted: number, reason: string) =>
    Effect.logError(`${nameOf(unit)} is dead after ${attempted} attempts, kept as a dead letter: ${reason}`).pipe(
      annotate(unit),
    )

  /** A drain leaves what lies behind its bound, unless its attempt has begun. */
  const leave = (run: Run) => {
    if (!draining.isBegun) return
    run.units = run.units.slice(run.next).flatMap((unit) => withoutLeft(unit, draining) ?? [])
    run.next = 0
  }

  const run = Effect.fnUntraced(function* (
    units: ReadonlyArray<Unit>,
    more: () => boolean,
  ): Effect.fn.Return<boolean, StorageError | NotOwner> {
    const run: Run = { units: [...units], next: 0, ended: null, more }
    while (true) {
      yield* handOver(run)
      leave(run)
      if (run.next === run.units.length) return true
      const { runtime, changed, paused } = handle
      const next = run.units[run.next]!
      const refused = refusal()
      if (refused !== null) {
        showTrouble(null, next)
        yield* refuse(run, run.units.length, refused)
        continue
      }
      if (runtime === null || paused !== null) {
        showTrouble(
          paused === null ? (handle.error ?? "it is being built") : `it is paused: ${paused}; resumeSink lets it go on`,
          next,
        )
        const goesOn = yield* rest(changed)
        showTrouble(null, next)
        if (goesOn) continue
        return false
      }
      const admission = yield* admit(run, runtime.throttle)
      if (admission === null) {
        if (yield* holdBack(run, runtime.throttle!, changed)) continue
        return false
      }
      refusing = null
      yield* offer(run.units.slice(run.next, admission.end))
      if (handle.runtime !== runtime || handle.paused !== paused) {
        // It was changed meanwhile: nothing goes out through what it was.
        window.giveBack(admission.reservation)
        continue
      }
      const end = yield* Effect.raceFirst(deliverUpTo(run, admission, runtime), Effect.as(changed, "goes on" as const))
      // What failed, or was not sent after all, counts for nothing.
      window.giveBack(admission.reservation)
      if (end === "given up") return false
    }
  })

  return { offer, run, refusal, heldUpBy, lastOutcomeAt: () => lastOutcomeAt }
}
