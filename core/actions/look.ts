import { Effect } from "effect"
import { isCancellable, isResolvable, isRetryable } from "./decisions.ts"
import { ActionNotFound, DeliveryNotFound, InvalidCursor } from "./error.ts"
import { callKey, deliveryKey } from "./keys.ts"
import { type Registry, typeOf } from "./registry.ts"
import { shownId } from "./runner/job.ts"
import type { StoreFailed } from "./store/error.ts"
import type { Store } from "./store/store.ts"
import {
  countDeliveries,
  type DeliveryCount,
  type DeliveryFilter,
  type DeliveryRow,
  deliveryStates,
  type DeliveryState,
  readActions,
  readCalls,
  readDeliveries,
  readDelivery,
} from "./store/views.ts"
import type { ActionView, CallView, DeliveriesFilter, DeliveriesRequest, DeliveryPage, DeliveryView } from "./views.ts"

const LIMIT = { usual: 100, most: 1_000 }

/** Why a list cannot be shown. */
export type ListError = ActionNotFound | InvalidCursor | StoreFailed

/** What operators can see. */
export interface Looking {
  readonly list: (request?: DeliveriesRequest) => Effect.Effect<DeliveryPage, ListError>
  readonly get: (id: string) => Effect.Effect<DeliveryView, DeliveryNotFound | StoreFailed>
  /** How many deliveries a filter shows. Of an action's in one state and store no more than 10,000 are counted. */
  readonly count: (filter?: DeliveriesFilter) => Effect.Effect<number, ActionNotFound | StoreFailed>
  /** Counts all that are kept, by store, action and state, as `count` does. */
  readonly counts: Effect.Effect<ReadonlyArray<DeliveryCount & { readonly store: string }>, StoreFailed>
  /** The calls that deliveries have made, by their ids. */
  readonly calls: (
    deliveries: ReadonlyArray<Pick<DeliveryView, "id" | "store" | "event" | "action">>,
  ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<CallView>>, StoreFailed>
  /** The actions, with counts of their deliveries in these states; counted as `count` does. */
  readonly overview: (states?: ReadonlyArray<DeliveryState>) => Effect.Effect<ReadonlyArray<ActionView>, StoreFailed>
}

/** A delivery where it is kept. */
export interface Found {
  readonly store: Store
  readonly row: DeliveryRow
}

/** Where to look for the deliveries of a request: stores, each with the number to go on behind. */
export interface Part {
  readonly store: Store
  readonly filter: DeliveryFilter
  readonly behind: number
}

/** What operators can see, and how it is looked for. */
export interface Look extends Looking {
  readonly find: (id: string) => Effect.Effect<Found, DeliveryNotFound | StoreFailed>
  readonly parts: (
    request: Omit<DeliveriesFilter, "state"> & {
      readonly states?: ReadonlyArray<DeliveryState>
      readonly after?: string | null
    },
  ) => Effect.Effect<ReadonlyArray<Part>, ListError>
}

export const viewOf = (store: string, { pk, ...row }: DeliveryRow): DeliveryView => ({
  id: shownId(store, pk),
  store,
  ...row,
  retryable: isRetryable(row),
  resolvable: isResolvable(row),
  cancellable: isCancellable(row),
})

const parseId = (id: string): { readonly store: string; readonly pk: number } | null => {
  const [, store, pk] = /^(.+):(\d{1,15})$/.exec(id) ?? []
  return store === undefined ? null : { store, pk: Number(pk) }
}

const countsOf = (of: ReadonlyArray<Store>, states: ReadonlyArray<DeliveryState>, actions: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(of, (store) =>
      Effect.map(
        store.read("count deliveries", (session) => countDeliveries(session, { states, actions })),
        (counts) => counts.map((count) => ({ store: store.name, ...count })),
      ),
    ),
    (all) => all.flat(),
  )

/** @param written the store that actions write, which holds the records of calls */
export const makeLook = (stores: ReadonlyArray<Store>, written: Store, registry: Registry): Look => {
  const find = Effect.fnUntraced(function* (id: string) {
    const place = parseId(id)
    const store = stores.find(({ name }) => name === place?.store)
    if (place === null || store === undefined) return yield* new DeliveryNotFound({ id })
    const row = yield* store.read("read a delivery", (session) => readDelivery(session, place.pk))
    if (row === null) return yield* new DeliveryNotFound({ id })
    return { store, row }
  })

  /** All actions: those of the program first. */
  const actionNames = Effect.map(
    Effect.forEach(stores, (store) => store.read("read actions", readActions)),
    (kept) => [...new Set([...registry.actions.keys(), ...kept.flat().toSorted()])],
  )

  const parts: Look["parts"] = Effect.fnUntraced(function* ({ states, action, store: only, after = null }) {
    const among = stores.filter(({ name }) => only === undefined || name === only)
    if (among.length === 0) {
      const known = stores.map(({ name }) => name)
      return yield* new ActionNotFound({ what: "event store", name: only!, known })
    }
    const place = after === null ? null : parseId(after)
    const begin = place === null ? 0 : among.findIndex(({ name }) => name === place.store)
    if (begin < 0 || (place === null && after !== null)) return yield* new InvalidCursor({ after: after! })
    const actions = yield* actionsIn(action, states)
    const filter = { ...(states === undefined ? {} : { states }), ...(actions === undefined ? {} : { actions }) }
    return among.slice(begin).map((store) => ({ store, filter, behind: store.name === place?.store ? place.pk : 0 }))
  })

  /** The actions whose deliveries are meant; undefined where it makes no difference. */
  const actionsIn = Effect.fnUntraced(function* (
    action: string | undefined,
    states: ReadonlyArray<DeliveryState> | undefined,
  ): Effect.fn.Return<ReadonlyArray<string> | undefined, ActionNotFound | StoreFailed> {
    if (action === undefined) return states === undefined ? undefined : yield* actionNames
    if (registry.actions.has(action)) return [action]
    const known = yield* actionNames
    if (known.includes(action)) return [action]
    return yield* new ActionNotFound({ what: "action", name: action, known })
  })

  const list = Effect.fn("Actions.list")(function* ({
    state,
    limit = LIMIT.usual,
    ...request
  }: DeliveriesRequest = {}) {
    const most = Math.min(Math.max(limit, 1), LIMIT.most)
    const found: Array<DeliveryView> = []
    // One more tells whether there are any behind.
    for (const { store, filter, behind } of yield* parts({
      ...request,
      ...(state === undefined ? {} : { states: [state] }),
    })) {
      const rows = yield* store.read("list deliveries", (session) =>
        readDeliveries(session, filter, behind, most + 1 - found.length),
      )
      found.push(...rows.map((row) => viewOf(store.name, row)))
      if (found.length > most) break
    }
    const deliveries = found.slice(0, most)
    return { deliveries, next: found.length > most ? deliveries.at(-1)!.id : null }
  })

  return {
    find,
    parts,
    list,
    get: (id) => Effect.map(find(id), ({ store, row }) => viewOf(store.name, row)),
    count: Effect.fn("Actions.count")(function* ({ state, ...filter }: DeliveriesFilter = {}) {
      const states = state === undefined ? deliveryStates : [state]
      const found = yield* Effect.catchTag(parts({ ...filter, states }), "InvalidCursor", Effect.die)
      const counts = yield* countsOf(
        found.map(({ store }) => store),
        states,
        found[0]?.filter.actions ?? [],
      )
      return counts.reduce((sum, { deliveries }) => sum + deliveries, 0)
    }),
    counts: Effect.flatMap(actionNames, (names) => countsOf(stores, deliveryStates.toSorted(), names.toSorted())),
    calls: Effect.fn("Actions.calls")(function* (deliveries) {
      const ids = new Map(
        deliveries.map(({ id, store, event, action }) => [
          deliveryKey(store, { pk: parseId(id)!.pk, event, action }),
          id,
        ]),
      )
      const rows = yield* written.read("read calls", (session) => readCalls(session, [...ids.keys()]))
      const calls = rows.map(({ delivery, ...call }) => ({
        of: ids.get(delivery)!,
        call: { ...call, key: callKey(delivery, call.place) },
      }))
      const grouped = Map.groupBy(calls, ({ of }) => of)
      return new Map([...grouped].map(([id, own]) => [id, own.map(({ call }) => call)]))
    }),
    overview: Effect.fn("Actions.overview")(function* (states = deliveryStates) {
      const names = yield* actionNames
      const counts = Map.groupBy(yield* countsOf(stores, states, names), ({ action }) => action)
      return names.map((name) => ({
        name,
        declared: registry.actions.has(name),
        subscriptions: (registry.actions.get(name)?.on ?? []).map((one) => ({
          type: typeOf(one),
          version: one.version,
          monitor: one.kind === "match" ? one.monitor : null,
        })),
        counts: counts.get(name) ?? [],
      }))
    }),
  }
}
