import { Cause, Clock, Effect, Exit, Random, Result } from "effect"
import { backoffMs } from "../../pipeline/backoff.ts"
import type { Action } from "../action.ts"
import type { Registry, Subscribed } from "../registry.ts"
import { LEASE_MARGIN_MS } from "../store/claim.ts"
import { type Code, extend, fail, Lost, park, retryLater, succeed } from "../store/deliveries.ts"
import type { StoreFailed } from "../store/error.ts"
import { AlreadyHandled, Overtaken, readRecords } from "../store/records.ts"
import { commitRun, release, settleDelivery } from "./commit.ts"
import { type Environment, execute } from "./execute.ts"
import { type Job, shownId } from "./job.ts"
import type { ActionMetrics, RunOutcome } from "./metrics.ts"

/** An event this deep in a chain of events is not run. */
const CHAIN_LIMIT = 16

/** How often a run that met another one runs again before that counts as a failure. */
const RERUNS = 30
const RERUN_MS = { initialBackoffMs: 5, maxBackoffMs: 500, maxAttempts: RERUNS }

/** The most that is kept of what a failure says. */
const REASON = 1_000

/** What the runner has for its deliveries. */
export interface Running extends Environment {
  readonly registry: Registry
  readonly metrics: ActionMetrics
  /** Told of each delivery whose state changed. */
  readonly changed: (job: Job, state: string, code: Code | null) => Effect.Effect<void>
}

/** What the runner has for those of its own. */
export interface InRunner extends Running {
  /** Gives the place of a run to another delivery until its commit is over. */
  readonly givingPlace: <A, E>(commit: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

const shortened = (text: string): string => (text.length > REASON ? `${text.slice(0, REASON)}…` : text)

const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return shortened(error instanceof Error ? error.message : String(error))
}

/** How one run went: over, or to be run again with what is recorded by then. */
type Went = { readonly over: RunOutcome } | { readonly again: string }

/** Runs a claimed delivery to an end: handled, failed, parked, to be tried later, or given back when it is interrupted. */
export const processJob = (job: Job, running: InRunner): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    decide(job, running, restore).pipe(
      Effect.tap((outcome) => Effect.sync(() => running.metrics.ended(job.claimed.action, outcome))),
      Effect.catchCause((cause) =>
        Effect.logError(
          `delivery ${shownId(job.store.name, job.held.pk)} to action ${job.claimed.action} is left to its lease`,
          cause,
        ),
      ),
      Effect.annotateLogs({ action: job.claimed.action, delivery: shownId(job.store.name, job.held.pk) }),
      Effect.asVoid,
    ),
  )

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const decide = Effect.fnUntraced(function* (
  job: Job,
  running: InRunner,
  restore: Restore,
): Effect.fn.Return<RunOutcome, StoreFailed> {
  const { claimed } = job
  if (job.handled) return yield* endSucceeded(job, running, "repeated")
  const action = running.registry.actions.get(claimed.action)
  const subscribed = running.registry.subscribed(claimed.action, claimed.type)
  if (action === undefined || subscribed === undefined) {
    const missing = action === undefined ? "has no action of this name" : `does not subscribe it to ${claimed.type}`
    return yield* endFailed(job, running, "unknown_action", `the program ${missing}; add it and retry, or cancel`, 0)
  }
  if (claimed.depth >= CHAIN_LIMIT) {
    const reason = `the event is ${claimed.depth} deep in a chain of events that lead to each other; ${CHAIN_LIMIT} is the limit`
    return yield* endFailed(job, running, "event_chain_limit", reason, 0)
  }
  const { version, encoding, payload: text } = claimed
  const payload = subscribed.read({ version, encoding, text })
  if (Result.isFailure(payload)) {
    return yield* endParked(job, running, { code: "payload_unreadable", ...payload.failure })
  }
  return yield* runUntilOver(job, action, subscribed, payload.success, running, restore)
})

const runUntilOver = Effect.fnUntraced(function* (
  claimed: Job,
  action: Action,
  subscribed: Subscribed,
  payload: unknown,
  running: InRunner,
  restore: Restore,
): Effect.fn.Return<RunOutcome, StoreFailed> {
  let job = claimed
  for (let reruns = 0; ; reruns++) {
    const went = yield* runOnce(job, action, subscribed, payload, running, restore)
    if ("over" in went) return went.over
    running.metrics.ended(action.name, "conflict")
    if (reruns === RERUNS) {
      return yield* endRetried(job, action, running, `it met other changes ${RERUNS} times: ${went.again}`)
    }
    const random = yield* Random.next
    const pause = yield* Effect.exit(restore(Effect.sleep(backoffMs(RERUN_MS, reruns + 1, random, null))))
    if (Exit.isFailure(pause)) return yield* giveBack(job, running)
    const next = yield* Effect.exit(refreshed(job, action, running))
    if (Exit.isFailure(next)) {
      if (isLost(next.cause)) return "overtaken"
      // What the database did not take a moment ago it may take the next time.
      continue
    }
    job = next.value
    if (job.handled) return yield* endSucceeded(job, running, "repeated")
  }
})

const runOnce = Effect.fnUntraced(function* (
  job: Job,
  action: Action,
  { subscription }: Subscribed,
  payload: unknown,
  running: InRunner,
  restore: Restore,
): Effect.fn.Return<Went, StoreFailed> {
  const done = yield* Effect.exit(restore(execute(job, action, subscription, payload, running)))
  if (Exit.isFailure(done)) {
    if (Cause.hasInterruptsOnly(done.cause)) return { over: yield* giveBack(job, running) }
    return yield* failedRun(job, action, running, done.cause)
  }
  const { exit, verdict, ms } = done.value
  running.metrics.took(action.name, ms)
  if (verdict !== null) {
    switch (verdict.kind) {
      case "park":
        return { over: yield* endParked(job, running, verdict) }
      case "overtaken":
        return { over: yield* giveBack(job, running, "overtaken") }
      case "unstored":
        return { over: yield* endRetried(job, action, running, verdict.reason) }
    }
  }
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterruptsOnly(exit.cause)) return { over: yield* giveBack(job, running) }
    return yield* failedRun(job, action, running, exit.cause)
  }
  const committed = yield* Effect.exit(running.givingPlace(commitRun(job, running.written, done.value)))
  if (Exit.isSuccess(committed)) {
    yield* running.changed(job, "succeeded", null)
    return { over: "succeeded" }
  }
  return yield* notCommitted(job, action, running, committed.cause)
})

const notCommitted = Effect.fnUntraced(function* (
  job: Job,
  action: Action,
  running: Running,
  cause: Cause.Cause<StoreFailed>,
): Effect.fn.Return<Went, StoreFailed> {
  const failed = Cause.findErrorOption(cause)
  if (failed._tag === "None") return yield* failedRun(job, action, running, cause)
  const { failure, cause: thrown, reason } = failed.value
  if (thrown instanceof Lost) return { over: "overtaken" }
  if (thrown instanceof Overtaken) return { over: yield* giveBack(job, running, "overtaken") }
  if (thrown instanceof AlreadyHandled) return { over: yield* endSucceeded(job, running, "repeated") }
  if (failure !== "refused") return { again: reason }
  return yield* failedRun(job, action, running, Cause.die(thrown))
})

/** The delivery as it is now, under a lease from now on. */
const refreshed = Effect.fnUntraced(function* (job: Job, action: Action, { written }: Running) {
  const until = (yield* Clock.currentTimeMillis) + action.timeoutMs + LEASE_MARGIN_MS
  yield* job.store.write("extend a lease", (session) => extend(session, job.held, until))
  const { handled, calls } = yield* written.read("read what is recorded", (session) =>
    readRecords(session, [job.run.key]),
  )
  return { ...job, handled: handled.has(job.run.key), calls: calls.get(job.run.key) ?? [] }
})

const isLost = (cause: Cause.Cause<StoreFailed>): boolean => {
  const failed = Cause.findErrorOption(cause)
  return failed._tag === "Some" && failed.value.cause instanceof Lost
}

const failedRun = Effect.fnUntraced(function* (
  job: Job,
  action: Action,
  running: Running,
  cause: Cause.Cause<unknown>,
) {
  if (Cause.hasDies(cause)) yield* Effect.logError(`action ${action.name} broke; it counts as a failed attempt`, cause)
  return { over: yield* endRetried(job, action, running, reasonOf(cause)) }
})

/** Tries it later, or not any more. */
const endRetried = Effect.fnUntraced(function* (job: Job, action: Action, running: Running, reason: string) {
  const attempts = job.claimed.attempts + 1
  if (attempts >= action.retry.maxAttempts) {
    return yield* endFailed(job, running, "attempts_exhausted", reason, attempts)
  }
  const due = (yield* Clock.currentTimeMillis) + backoffMs(action.retry, attempts, yield* Random.next, null)
  yield* settled(
    settleDelivery(job, "try a delivery later", (session) => retryLater(session, job.held, { attempts, due, reason })),
  )
  yield* running.changed(job, "waiting", null)
  return "retried" as const
})

const endFailed = Effect.fnUntraced(function* (
  job: Job,
  running: Running,
  code: Code,
  reason: string,
  attempts: number,
) {
  const now = yield* Clock.currentTimeMillis
  const end = { code, reason: shortened(reason), attempts: Math.max(attempts, job.claimed.attempts) }
  yield* Effect.logError(`a delivery to action ${job.claimed.action} failed: ${code}: ${end.reason}`)
  yield* settled(settleDelivery(job, "fail a delivery", (session) => fail(session, job.held, end, now)))
  yield* running.changed(job, "failed", code)
  return "failed" as const
})

const endParked = Effect.fnUntraced(function* (
  job: Job,
  running: Running,
  { code, reason, reader }: { readonly code: Code; readonly reason: string; readonly reader: number | null },
) {
  const end = { code, reason: shortened(reason), reader }
  yield* Effect.logWarning(`a delivery to action ${job.claimed.action} is parked: ${code}: ${end.reason}`)
  yield* settled(settleDelivery(job, "park a delivery", (session) => park(session, job.held, end)))
  yield* running.changed(job, "parked", code)
  return "parked" as const
})

const endSucceeded = Effect.fnUntraced(function* (job: Job, running: Running, outcome: RunOutcome) {
  const now = yield* Clock.currentTimeMillis
  yield* settled(settleDelivery(job, "end a delivery", (session) => succeed(session, job.held, now)))
  yield* running.changed(job, "succeeded", null)
  return outcome
})

const giveBack = Effect.fnUntraced(function* (job: Job, running: Running, outcome: RunOutcome = "given_back") {
  yield* settled(release(job))
  yield* running.changed(job, "waiting", null)
  return outcome
})

/** A delivery that is not held any more is someone else's to settle. */
const settled = (write: Effect.Effect<void, StoreFailed>): Effect.Effect<void, StoreFailed> =>
  Effect.catchIf(
    write,
    ({ cause }) => cause instanceof Lost,
    () => Effect.void,
  )
