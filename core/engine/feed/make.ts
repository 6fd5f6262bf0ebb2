import { Effect, Stream } from "effect"
import { Storage } from "../../storage/storage.ts"
import { InvalidPosition } from "../error.ts"
import type { Feed } from "../feed.ts"
import { checkpointPull } from "./checkpoints.ts"
import { matchesPage } from "./history.ts"
import { FeedHub } from "./hub.ts"
import type { FeedRequest } from "./item.ts"
import { LiveLog } from "./live-log.ts"
import { aheadOf, decodePosition, type ItemFilter, newestOf, type Positions, staleness } from "./position.ts"
import { runPoller, runReader } from "./reader.ts"
import { type Acceptance, Subscription } from "./subscription.ts"

/** In items: what the log shared by live readers holds, and a page read from storage. */
export interface FeedLimits {
  readonly log: number
  readonly page: number
}

export const defaultLimits: FeedLimits = { log: 4096, page: 256 }

/** Builds the feed; its shared reader runs in the scope. */
export const makeFeed = Effect.fnUntraced(function* (limits: FeedLimits) {
  const store = yield* Storage
  const { announcements } = yield* FeedHub
  const log = new LiveLog(limits.log)
  let checkpointReaders = 0

  for (const { network, position } of yield* store.feedStates()) announcements.shown(network, position)
  log.skipTo(announcements.newest)
  yield* Effect.forkScoped(runReader(store, announcements, log, limits.page))
  yield* store.feedGrowth.pipe(
    Stream.runForEach(({ network, position }) => Effect.sync(() => announcements.shown(network, position))),
    Effect.forkScoped,
  )
  yield* Effect.forkScoped(runPoller(store, announcements, () => log.subscribers + checkpointReaders > 0))

  /** Where a subscription begins, or why it cannot. */
  const startOf = Effect.fnUntraced(function* (after: string | null, filter: ItemFilter) {
    const states = yield* store.feedStates(filter.network)
    for (const { network, position } of states) announcements.shown(network, position)
    if (after === null) return newestOf(states) as Positions
    const token = decodePosition(after, filter.network)
    if (token instanceof InvalidPosition) return yield* token
    const refusal = aheadOf(token.positions, states) ?? staleness(token.positions, filter, states)
    if (refusal !== null) return yield* refusal
    return token.positions
  })

  const open = Effect.fn("Feed.open")(function* (request: FeedRequest) {
    const { network, monitor } = request
    const filter: ItemFilter = {
      kinds: [
        ...(request.kinds.includes("MatchEmitted") ? (["match"] as const) : []),
        ...(request.kinds.includes("MatchRetracted") ? (["retracted"] as const) : []),
      ],
      ...(network === undefined ? {} : { network }),
      ...(monitor === undefined ? {} : { monitor }),
    }
    const accepted: Acceptance = {
      checkpointsAfter: request.kinds.includes("CheckpointAdvanced") ? announcements.version : null,
      positions: yield* startOf(request.after, filter),
    }
    return Stream.unwrap(
      Effect.acquireRelease(
        Effect.sync(() => {
          log.subscribers++
          return Stream.fromPull(Effect.succeed(new Subscription(store, log, filter, accepted, limits.page).pull))
        }),
        () =>
          Effect.sync(() => {
            log.subscribers--
          }),
      ),
    )
  })

  const checkpoints = (network?: string) =>
    Stream.unwrap(
      Effect.acquireRelease(
        Effect.sync(() => {
          checkpointReaders++
          return Stream.fromPull(Effect.succeed(checkpointPull(store, announcements, network)))
        }),
        () =>
          Effect.sync(() => {
            checkpointReaders--
          }),
      ),
    )

  return { open, checkpoints, matches: (request) => matchesPage(store, request) } satisfies Feed["Service"]
})
