import { Clock, Effect, PubSub, Result, Schema } from "effect"
import { DeliveryNotFound, DeliveryRefused } from "./error.ts"
import { deliveryKey } from "./keys.ts"
import { payloadProblems } from "./payload-problems.ts"
import type { Registry } from "./registry.ts"
import { shownId } from "./runner/job.ts"
import { cancelDelivery, setResult, startAgain } from "./store/decide.ts"
import type { StoreFailed } from "./store/error.ts"
import { forgetIntent, readRecords } from "./store/records.ts"
import type { Store } from "./store/store.ts"
import { countDeliveries, type DeliveryRow, type DeliveryState, readDeliveries, readDelivery } from "./store/views.ts"
import type {
  CallOutcome,
  DeliveriesRequest,
  DeliveryChange,
  DeliveryCount,
  DeliveryPage,
  DeliveryView,
} from "./views.ts"

const LIMIT = { usual: 100, most: 500 }

type Decision = Effect.Effect<DeliveryView, DeliveryNotFound | DeliveryRefused | StoreFailed>

/** What operators can see and do. */
export interface Operating {
  readonly list: (request?: DeliveriesRequest) => Effect.Effect<DeliveryPage, StoreFailed>
  readonly get: (id: string) => Effect.Effect<DeliveryView, DeliveryNotFound | StoreFailed>
  /** Counts all that are kept, by store, action and state. */
  readonly counts: Effect.Effect<ReadonlyArray<DeliveryCount & { readonly store: string }>, StoreFailed>
  /** Runs a delivery again that is failed, parked or cancelled, with all its attempts; one that waits at once. */
  readonly retry: (id: string) => Decision
  /** Ends the wait of a delivery that is parked as `outcome_unknown`: its call counts as done, or as never sent. */
  readonly resolve: (id: string, outcome: CallOutcome) => Decision
  /** Gives a delivery up that does not run: what it did stays, nothing more is done. */
  readonly cancel: (id: string) => Decision
}

const viewOf = (store: string, { pk, ...row }: DeliveryRow): DeliveryView => ({ id: shownId(store, pk), store, ...row })

const refuse = (id: string, reason: string) => new DeliveryRefused({ id, reason })

/** A place in the list of deliveries: a store, and a number in it. */
const placeOf = (id: string): readonly [string, number] => {
  const end = id.lastIndexOf(":")
  return [id.slice(0, end), Number(id.slice(end + 1))]
}

/** @param wake makes the runner look for what may be run */
export const makeOperating = (
  stores: ReadonlyArray<Store>,
  written: Store,
  registry: Registry,
  changes: PubSub.PubSub<DeliveryChange>,
  wake: Effect.Effect<void>,
): Operating => {
  const find = Effect.fnUntraced(function* (id: string) {
    const [name, number] = placeOf(id)
    const store = stores.find((one) => one.name === name)
    if (store === undefined || !Number.isSafeInteger(number)) return yield* new DeliveryNotFound({ id })
    const row = yield* store.read("read a delivery", (session) => readDelivery(session, number))
    if (row === null) return yield* new DeliveryNotFound({ id })
    return { store, row }
  })

  const get = (id: string) => Effect.map(find(id), ({ store, row }) => viewOf(store.name, row))

  /** The delivery as it is after a decision, which is told. */
  const decided = Effect.fnUntraced(function* (id: string) {
    const view = yield* get(id)
    const { store, action, event, state, code } = view
    yield* PubSub.publish(changes, { id, store, action, event, state, code })
    yield* wake
    return view
  })

  const retry = Effect.fn("Actions.retry")(function* (id: string) {
    const { store, row } = yield* find(id)
    if (row.code === "outcome_unknown" && row.state === "parked") {
      return yield* refuse(id, `${row.reason}. It is not simply run again: resolve it, or cancel it`)
    }
    const from: ReadonlyArray<DeliveryState> = ["failed", "parked", "cancelled", "waiting"]
    const now = yield* Clock.currentTimeMillis
    const done = yield* store.write("retry a delivery", (session) => startAgain(session, row.pk, from, now))
    if (!done) return yield* refuse(id, `it is ${row.state}; what runs or has succeeded is not retried`)
    return yield* decided(id)
  })

  const cancel = Effect.fn("Actions.cancel")(function* (id: string) {
    const { store, row } = yield* find(id)
    const now = yield* Clock.currentTimeMillis
    const done = yield* store.write("cancel a delivery", (session) =>
      cancelDelivery(session, row.pk, ["waiting", "failed", "parked"], now),
    )
    if (!done) return yield* refuse(id, `it is ${row.state}; only what waits, is failed or parked can be cancelled`)
    return yield* decided(id)
  })

  /** The result of a call as it is recorded. */
  const resultOf = Effect.fnUntraced(function* (id: string, action: string, name: string, result: unknown) {
    const operations = Object.values(registry.actions.get(action)?.calls ?? {})
    const operation = operations.find((one) => one.name === name)
    if (operation === undefined) {
      return yield* refuse(id, `this program's action ${action} declares no operation ${name}, which the result is of`)
    }
    const read = Schema.decodeUnknownResult(Schema.toCodecJson(operation.output))(result, { errors: "all" })
    if (Result.isSuccess(read)) return JSON.stringify(result) ?? null
    const problems = payloadProblems(read.failure.issue).map(({ path, message }) =>
      path === "" ? message : `${path}: ${message}`,
    )
    return yield* refuse(id, `the result does not fit the output schema of ${name}: ${problems.join("; ")}`)
  })

  const resolve = Effect.fn("Actions.resolve")(function* (id: string, outcome: CallOutcome) {
    const { store, row } = yield* find(id)
    if (row.state !== "parked" || row.code !== "outcome_unknown") {
      return yield* refuse(
        id,
        `it is ${row.code ?? row.state}; only an unknown outcome (outcome_unknown) can be resolved`,
      )
    }
    const key = deliveryKey(store.name, row.event, row.action)
    const { calls } = yield* written.read("read what is recorded", (session) => readRecords(session, [key]))
    const call = calls.get(key)?.find(({ state }) => state === "intent")
    // It is resolved already, when a crash came between that and the next step.
    if (call !== undefined) {
      if (outcome.done) {
        const result = yield* resultOf(id, row.action, call.operation, outcome.result)
        yield* written.write("resolve a call", (session) => setResult(session, key, call.place, result))
      } else {
        yield* written.write("resolve a call", (session) => forgetIntent(session, key))
      }
    }
    const now = yield* Clock.currentTimeMillis
    yield* store.write("go on with a delivery", (session) => startAgain(session, row.pk, ["parked"], now))
    return yield* decided(id)
  })

  const list = Effect.fn("Actions.list")(function* ({
    state,
    action,
    store: only,
    after = null,
    limit = LIMIT.usual,
  }: DeliveriesRequest = {}) {
    const most = Math.min(Math.max(limit, 1), LIMIT.most)
    const filter = { ...(state === undefined ? {} : { state }), ...(action === undefined ? {} : { action }) }
    const among = stores.filter(({ name }) => only === undefined || name === only)
    const [from, behind] = after === null ? [null, 0] : placeOf(after)
    const begin = from === null ? 0 : among.findIndex(({ name }) => name === from)
    const found: Array<DeliveryView> = []
    // One more tells whether there are any behind.
    for (const store of begin < 0 ? [] : among.slice(begin)) {
      const rows = yield* store.read("list deliveries", (session) =>
        readDeliveries(session, filter, store.name === from ? behind : 0, most + 1 - found.length),
      )
      found.push(...rows.map((row) => viewOf(store.name, row)))
      if (found.length > most) break
    }
    const deliveries = found.slice(0, most)
    return { deliveries, next: found.length > most ? deliveries.at(-1)!.id : null }
  })

  return {
    list,
    get,
    counts: Effect.map(
      Effect.forEach(stores, (store) =>
        Effect.map(store.read("count deliveries", countDeliveries), (counts) =>
          counts.map((count) => ({ store: store.name, ...count })),
        ),
      ),
      (all) => all.flat(),
    ),
    retry,
    resolve,
    cancel,
  }
}
