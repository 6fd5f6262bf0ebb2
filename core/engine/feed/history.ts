import { Effect } from "effect"
import type { Storage } from "../../storage/storage.ts"
import { InvalidPosition } from "../error.ts"
import type { MatchesRequest, MatchPage } from "./item.ts"
import { aheadOf, decodePosition, encodePosition, type ItemFilter, newestOf, OLDEST, staleness } from "./position.ts"
import { matchView } from "./view.ts"

const MAX_PAGE = 1000

/**
 * A page of the matches that the feed holds and no retraction took back: one network after the other in the order of
 * their ids, each oldest first. The first page fixes the newest positions as the bound of all pages that follow it.
 */
export const matchesPage = Effect.fn("Feed.matches")(function* (store: Storage["Service"], request: MatchesRequest) {
  const { network, monitor } = request
  const first = Math.max(1, Math.min(request.first, MAX_PAGE))
  const token = decodePosition(request.after ?? OLDEST, network)
  if (token instanceof InvalidPosition) return yield* token
  const before = yield* store.feedStates(network)
  const ahead = aheadOf(token.positions, before)
  if (ahead !== null) return yield* ahead

  const bound = token.bound ?? newestOf(before)
  const positions = new Map(token.positions)
  const items: Array<MatchPage["items"][number]> = []
  let hasNextPage = false
  for (const [id, upTo] of Array.from(bound).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const after = positions.get(id) ?? 0
    if (after >= upTo) continue
    const stored = yield* store.feedPage({
      network: id,
      kinds: ["match"],
      after,
      upTo,
      limit: first - items.length + 1,
      standing: true,
      ...(monitor === undefined ? {} : { monitor }),
    })
    for (const item of stored) {
      if (items.length === first) {
        hasNextPage = true
        break
      }
      if (item.kind !== "match") continue
      positions.set(id, item.position)
      items.push({ cursor: encodePosition(network, positions, bound), match: matchView(item) })
    }
    if (hasNextPage) break
    positions.set(id, upTo)
  }

  if (token.positions.size > 0) {
    const filter: ItemFilter = {
      kinds: ["match"],
      ...(network === undefined ? {} : { network }),
      ...(monitor === undefined ? {} : { monitor }),
    }
    const stale = staleness(token.positions, filter, yield* store.feedStates(network))
    if (stale !== null) return yield* stale
  }
  const endCursor = hasNextPage ? items.at(-1)!.cursor : encodePosition(network, positions)
  return { items, hasNextPage, endCursor } satisfies MatchPage
})
