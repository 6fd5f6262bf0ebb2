import { Clock, Effect, PubSub } from "effect"
import type { CANCELLABLE, RETRYABLE } from "./decisions.ts"
import { isResolvable } from "./decisions.ts"
import type { ListError, Look, Part } from "./look.ts"
import { shownId } from "./runner/job.ts"
import { cancelMany, startManyAgain } from "./store/decide.ts"
import { type DeliveryRow, type DeliveryState, readDeliveries } from "./store/views.ts"
import type { DeliveryChange, ManyOutcome, ManyRequest } from "./views.ts"

const LIMIT = { usual: 500, most: 10_000 }

/** Deliveries of one transaction: keeps it to a few ms. */
const STEP = 200

/** What operators can do with many deliveries at once, the oldest first. */
export interface Many {
  /** Retries deliveries in these states, except those of unknown outcome. */
  readonly retryAll: (request: ManyRequest<(typeof RETRYABLE)[number]>) => Effect.Effect<ManyOutcome, ListError>
  /** Gives deliveries up that are in these states. */
  readonly cancelAll: (request: ManyRequest<(typeof CANCELLABLE)[number]>) => Effect.Effect<ManyOutcome, ListError>
}

interface Change {
  readonly operation: string
  readonly to: DeliveryState
  /** Whether one is left as it is. */
  readonly leaves: (row: DeliveryRow) => boolean
  readonly write: typeof startManyAgain
}

const RETRY: Change = { operation: "retry deliveries", to: "waiting", leaves: isResolvable, write: startManyAgain }
const CANCEL: Change = { operation: "cancel deliveries", to: "cancelled", leaves: () => false, write: cancelMany }

export const makeMany = (
  parts: Look["parts"],
  changes: PubSub.PubSub<DeliveryChange>,
  wake: Effect.Effect<void>,
): Many => {
  /** Changes those of a page that can be; answers how many. */
  const step = Effect.fnUntraced(function* (
    { store, filter }: Part,
    rows: ReadonlyArray<DeliveryRow>,
    { operation, to, leaves, write }: Change,
  ) {
    const pks = rows.filter((row) => !leaves(row)).map(({ pk }) => pk)
    if (pks.length === 0) return 0
    const now = yield* Clock.currentTimeMillis
    const changed = yield* store.write(operation, (session) => write(session, pks, filter.states ?? [], now))
    for (const { pk, action, event, code } of rows) {
      if (!changed.has(pk)) continue
      const id = shownId(store.name, pk)
      const kept = to === "cancelled" ? code : null
      yield* PubSub.publish(changes, { id, store: store.name, action, event, state: to, code: kept })
    }
    yield* wake
    return changed.size
  })

  const changeAll = (name: string, change: Change) =>
    Effect.fn(name)(function* <State extends DeliveryState>({
      limit = LIMIT.usual,
      ...request
    }: ManyRequest<State>): Effect.fn.Return<ManyOutcome, ListError> {
      const most = Math.min(Math.max(limit, 1), LIMIT.most)
      let changed = 0
      let looked = 0
      for (const part of yield* parts(request)) {
        let { behind } = part
        while (true) {
          const size = Math.min(STEP, most - changed)
          // One more tells whether there are any behind.
          const rows = yield* part.store.read("list deliveries", (session) =>
            readDeliveries(session, part.filter, behind, size + 1),
          )
          if (size === 0 && rows.length > 0) {
            return { changed, skipped: looked - changed, next: shownId(part.store.name, behind) }
          }
          const page = rows.slice(0, size)
          changed += yield* step(part, page, change)
          looked += page.length
          if (rows.length <= size) break
          behind = page.at(-1)!.pk
        }
      }
      return { changed, skipped: looked - changed, next: null }
    })

  return { retryAll: changeAll("Actions.retryAll", RETRY), cancelAll: changeAll("Actions.cancelAll", CANCEL) }
}
