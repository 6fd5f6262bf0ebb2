import { Cause, Clock, Effect, Exit, Result, Schedule, Schema, Semaphore } from "effect"
import type { Operations } from "../action.ts"
import { argumentsHash, callKey } from "../keys.ts"
import { payloadProblems } from "../payload-problems.ts"
import { NothingDone, type Operation } from "../provider.ts"
import type { StoreFailed } from "../store/error.ts"
import { forgetIntent, holdNumber, Overtaken, type RecordedCall, recordCall, type RunId } from "../store/records.ts"
import type { Store } from "../store/store.ts"
import { currentTraceparent } from "./trace.ts"
import { RunStopped, type Verdict } from "./verdict.ts"

/** The calls of one run. */
export interface RunCalls {
  readonly calls: Readonly<Record<string, (input: any) => Effect.Effect<any, any, any>>>
  /** What ends the run whatever comes of it; null if nothing does. `completed`: whether the action came to its end. */
  readonly verdict: (completed: boolean) => Verdict | null
}

/** How long a result is kept from getting lost while the database does not take it. */
const untilTaken = Schedule.min([Schedule.exponential("20 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.upTo({ duration: "30 seconds" }),
)

const passes = ({ failure }: StoreFailed): boolean => failure !== "refused"

const unknownOutcome = (operation: string): Verdict => ({
  kind: "park",
  code: "outcome_unknown",
  reason: `call ${operation} was sent, and it is not known what came of it; look at the provider, then resolve it as done or not done`,
  reader: null,
})

const diverged = (reason: string): Verdict => ({ kind: "park", code: "call_diverged", reason, reader: null })

/** The declared operations as the action calls them: one after another, recorded, and replayed in a rerun. */
export const makeCalls = (
  store: Store,
  run: RunId,
  operations: Operations,
  recorded: ReadonlyArray<RecordedCall>,
): RunCalls => {
  const turn = Semaphore.makeUnsafe(1)
  const before = new Map(recorded.map((call) => [call.place, call]))
  const changing = new Set(
    Object.values(operations)
      .filter(({ repeat }) => repeat !== "safe")
      .map(({ name }) => name),
  )
  const lost = recorded.find(({ state }) => state === "intent")
  let place = 0
  let verdict: Verdict | null = lost === undefined ? null : unknownOutcome(lost.operation)
  /** A call that may never be repeated, of which nobody knows what came of it. */
  let unclear: string | null = null

  const stop = (why: Verdict): Effect.Effect<never> =>
    Effect.suspend(() => {
      verdict ??= why
      return Effect.die(new RunStopped("the run is over"))
    })

  /** Writes what must be known of a call, unless a later run has begun. */
  const record = (work: Parameters<typeof store.write<void>>[1]): Effect.Effect<void> =>
    store
      .write("record a call", async (session) => {
        await holdNumber(session, run)
        await work(session)
      })
      .pipe(
        Effect.retry({ while: passes, schedule: untilTaken }),
        Effect.catch((failed) =>
          stop(
            failed.cause instanceof Overtaken ? { kind: "overtaken" } : { kind: "unstored", reason: failed.message },
          ),
        ),
      )

  const replay = (operation: Operation, call: RecordedCall, hash: string): Effect.Effect<unknown> => {
    const { name } = operation
    if (call.operation !== name) {
      return stop(diverged(`call ${call.place} was ${call.operation} before, and is ${name} in this run`))
    }
    if (call.argumentsHash !== hash) {
      return stop(diverged(`call ${call.place} to ${name} has other arguments than it had before`))
    }
    const read = Schema.decodeUnknownResult(Schema.toCodecJson(operation.output))(JSON.parse(call.result ?? "null"))
    return Result.isSuccess(read)
      ? Effect.succeed(read.success)
      : stop(diverged(`the recorded result of call ${call.place} to ${name} does not fit its output schema any more`))
  }

  const send = Effect.fnUntraced(function* (operation: Operation, input: unknown, at: number, hash: string) {
    const { name, repeat } = operation
    const call = { place: at, operation: name, argumentsHash: hash, state: "intent", result: null } as const
    const now = yield* Clock.currentTimeMillis
    const traceparent = yield* currentTraceparent
    const options = {
      key: callKey(run.key, at),
      headers: traceparent === null ? {} : { traceparent },
    }
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        if (repeat === "never") {
          yield* record((session) => recordCall(session, run.key, call, now))
          unclear = name
        }
        const exit = yield* Effect.exit(restore(Effect.suspend(() => operation.call(input, options))))
        if (Exit.isFailure(exit)) {
          if (repeat === "never" && nothingDone(exit.cause)) {
            yield* record(async (session) => void (await forgetIntent(session, run.key)))
            unclear = null
          }
          return yield* exit
        }
        const json = Schema.encodeUnknownResult(Schema.toCodecJson(operation.output))(exit.value)
        if (Result.isFailure(json)) {
          const problems = payloadProblems(json.failure.issue).map(({ path, message }) => `${path}: ${message}`)
          return yield* Effect.die(
            new Error(`the result of ${name} does not fit its output schema: ${problems.join("; ")}`),
          )
        }
        const result = JSON.stringify(json.success) ?? null
        yield* record((session) => recordCall(session, run.key, { ...call, state: "done", result }, now))
        unclear = null
        return exit.value as unknown
      }),
    )
  })

  const invoke = (operation: Operation) => (input: unknown) =>
    turn
      .withPermits(1)(
        Effect.suspend(() => {
          if (verdict !== null) return stop(verdict)
          const json = Schema.encodeUnknownResult(Schema.toCodecJson(operation.input))(input)
          if (Result.isFailure(json)) {
            const problems = payloadProblems(json.failure.issue).map(({ path, message }) => `${path}: ${message}`)
            return Effect.die(
              new Error(`the input of ${operation.name} does not fit its input schema: ${problems.join("; ")}`),
            )
          }
          const at = place++
          const hash = argumentsHash(json.success)
          const known = before.get(at)
          return known === undefined ? send(operation, input, at, hash) : replay(operation, known, hash)
        }),
      )
      .pipe(Effect.withSpan(`call ${operation.name}`, { kind: "client", attributes: { operation: operation.name } }))

  return {
    calls: Object.fromEntries(Object.entries(operations).map(([name, operation]) => [name, invoke(operation)])),
    verdict: (completed) => {
      if (verdict !== null) return verdict
      if (unclear !== null) return unknownOutcome(unclear)
      if (!completed) return null
      const left = recorded.find(
        (call) => call.place >= place && (changing.has(call.operation) || !known(call.operation)),
      )
      return left === undefined
        ? null
        : diverged(`call ${left.place} to ${left.operation} was made before, and this run did not make it`)
    },
  }

  function known(operation: string): boolean {
    return Object.values(operations).some(({ name }) => name === operation)
  }
}

const nothingDone = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) => Cause.isFailReason(reason) && reason.error instanceof NothingDone)
