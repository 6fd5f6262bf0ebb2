import { Clock, Effect } from "effect"
import { isGone } from "../../storage/holder.ts"
import { readsEncoding } from "../payload.ts"
import type { Registry } from "../registry.ts"
import { giveBackExpired, giveBackOf, holders } from "../store/claim.ts"
import type { StoreFailed } from "../store/error.ts"
import type { Store } from "../store/store.ts"
import { readUnreadable, tryAgain } from "../store/unreadable.ts"

/** Gives back what nobody works on any more: under leases that ran out, or held by processes that have ended. */
export const giveBackLeft = Effect.fnUntraced(function* (store: Store): Effect.fn.Return<boolean, StoreFailed> {
  const now = yield* Clock.currentTimeMillis
  const gone = (yield* store.read("read holders", holders)).filter(isGone)
  const given = yield* store.write("give deliveries back", async (session) => {
    const expired = await giveBackExpired(session, now)
    return gone.length === 0 ? expired : expired + (await giveBackOf(session, gone, now))
  })
  return given > 0
})

/** Rows of unreadable payloads that are looked at in one go. */
const PAGE = 200

/** Tries again those parked payloads that this build may read, where the one that parked them did not. */
export const tryUnreadableAgain = Effect.fnUntraced(function* (
  store: Store,
  registry: Registry,
): Effect.fn.Return<boolean, StoreFailed> {
  let any = false
  for (const action of registry.actions.keys()) {
    let after = 0
    while (true) {
      const rows = yield* store.read("read unreadable payloads", (session) =>
        readUnreadable(session, action, after, PAGE),
      )
      const readable = rows.filter(({ type, encoding, reader }) => {
        const subscribed = registry.subscribed(action, type)
        if (subscribed === undefined || !readsEncoding(encoding)) return false
        return reader === null || subscribed.subscription.version > reader
      })
      if (readable.length > 0) {
        const now = yield* Clock.currentTimeMillis
        const pks = readable.map(({ pk }) => pk)
        any = true
        yield* store.write("try unreadable payloads again", (session) => tryAgain(session, pks, now))
      }
      if (rows.length < PAGE) break
      after = rows.at(-1)!.pk
    }
  }
  return any
})
