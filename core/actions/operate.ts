import { Clock, Effect, PubSub, Result, Schema } from "effect"
import { CANCELLABLE, isCancellable, isResolvable, isRetryable, RETRYABLE } from "./decisions.ts"
import { type DeliveryNotFound, DeliveryRefused, ResultInvalid } from "./error.ts"
import { deliveryKey } from "./keys.ts"
import { type Found, type Looking, makeLook, viewOf } from "./look.ts"
import { makeMany, type Many } from "./operate-many.ts"
import { payloadProblems } from "./payload-problems.ts"
import type { Registry } from "./registry.ts"
import { cancelDelivery, setResult, startAgain } from "./store/decide.ts"
import type { StoreFailed } from "./store/error.ts"
import { forgetIntent, readRecords } from "./store/records.ts"
import type { Store } from "./store/store.ts"
import { type DeliveryState, readDelivery } from "./store/views.ts"
import type { CallOutcome, DeliveryChange, DeliveryView } from "./views.ts"

type Decision<E = never> = Effect.Effect<DeliveryView, DeliveryNotFound | DeliveryRefused | StoreFailed | E>

/** What operators can see and do. */
export interface Operating extends Looking, Many {
  /** Runs a delivery again that is failed, parked or cancelled, with all its attempts; one that waits at once. */
  readonly retry: (id: string) => Decision
  /** Ends the wait of a delivery that is parked as `outcome_unknown`: its call counts as done, or as never sent. */
  readonly resolve: (id: string, outcome: CallOutcome) => Decision<ResultInvalid>
  /** Gives a delivery up that does not run: what it did stays, nothing more is done. */
  readonly cancel: (id: string) => Decision
}

const refuse = (id: string, reason: string) => new DeliveryRefused({ id, reason })

/** @param wake makes the runner look for what may be run */
export const makeOperating = (
  stores: ReadonlyArray<Store>,
  written: Store,
  registry: Registry,
  changes: PubSub.PubSub<DeliveryChange>,
  wake: Effect.Effect<void>,
): Operating => {
  const { find, parts, ...looking } = makeLook(stores, written, registry)
  const { get } = looking

  /** Decides about a delivery, if it is in one of these states, and tells it; answers it as it is then, or null. */
  const decide = Effect.fnUntraced(function* (
    { store, row }: Found,
    operation: string,
    change: typeof startAgain,
    from: ReadonlyArray<DeliveryState>,
  ) {
    const now = yield* Clock.currentTimeMillis
    const decided = yield* store.write(operation, async (session) =>
      // Read with the change: a runner may have it right behind it.
      (await change(session, row.pk, from, now)) ? readDelivery(session, row.pk) : null,
    )
    if (decided === null) return null
    const view = viewOf(store.name, decided)
    const { id, action, event, state, code } = view
    yield* PubSub.publish(changes, { id, store: store.name, action, event, state, code })
    yield* wake
    return view
  })

  const retry = Effect.fn("Actions.retry")(function* (id: string) {
    const found = yield* find(id)
    const { row } = found
    if (isResolvable(row)) {
      return yield* refuse(id, `${row.reason}. It is not simply run again: resolve it, or cancel it`)
    }
    const refused = (state: string) => refuse(id, `it is ${state}; what runs or has succeeded is not retried`)
    if (!isRetryable(row)) return yield* refused(row.state)
    return (yield* decide(found, "retry a delivery", startAgain, RETRYABLE)) ?? (yield* refused("running"))
  })

  const cancel = Effect.fn("Actions.cancel")(function* (id: string) {
    const found = yield* find(id)
    // It may have begun to run since it was read.
    const state = isCancellable(found.row) ? "running" : found.row.state
    const reason = `it is ${state}; only what waits, is failed or parked can be cancelled`
    return (yield* decide(found, "cancel a delivery", cancelDelivery, CANCELLABLE)) ?? (yield* refuse(id, reason))
  })

  const operationsOf = (action: string) => Object.values(registry.actions.get(action)?.calls ?? {})

  /** The result of a call as it is recorded. */
  const resultOf = Effect.fnUntraced(function* (id: string, action: string, name: string, result: unknown) {
    const operation = operationsOf(action).find((one) => one.name === name)
    if (operation === undefined) {
      return yield* refuse(id, `this program's action ${action} declares no operation ${name}, which the result is of`)
    }
    const read = Schema.decodeUnknownResult(Schema.toCodecJson(operation.output))(result, { errors: "all" })
    if (Result.isSuccess(read)) return JSON.stringify(result) ?? null
    return yield* new ResultInvalid({ id, operation: name, problems: payloadProblems(read.failure.issue) })
  })

  const resolve = Effect.fn("Actions.resolve")(function* (id: string, outcome: CallOutcome) {
    const found = yield* find(id)
    const { store, row } = found
    if (!isResolvable(row)) {
      return yield* refuse(
        id,
        `it is ${row.code ?? row.state}; only an unknown outcome (outcome_unknown) can be resolved`,
      )
    }
    const key = deliveryKey(store.name, row)
    const { calls } = yield* written.read("read what is recorded", (session) => readRecords(session, [key]))
    const recorded = calls.get(key) ?? []
    const call = recorded.find(({ state }) => state === "intent")
    if (call === undefined) {
      // A crash came between this and the next step: an answer that is recorded is not given up for another one.
      const safe = operationsOf(row.action).filter(({ repeat }) => repeat === "safe")
      const done = recorded.some(({ operation }) => !safe.some(({ name }) => name === operation))
      if (done !== outcome.done) {
        return yield* refuse(id, `it was resolved as ${done ? "done" : "not done"} before; say so again, or cancel it`)
      }
    } else {
      const result = outcome.done ? yield* resultOf(id, row.action, call.operation, outcome.result) : null
      const first = yield* written.write("resolve a call", (session) =>
        outcome.done ? setResult(session, key, call.place, result) : forgetIntent(session, key).then((n) => n > 0),
      )
      if (!first) return yield* refuse(id, "someone else has resolved it meanwhile; look at it again")
    }
    return (yield* decide(found, "go on with a delivery", startAgain, ["parked"])) ?? (yield* get(id))
  })

  return { ...looking, ...makeMany(parts, changes, wake), retry, resolve, cancel }
}
