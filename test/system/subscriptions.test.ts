import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type GraphqlError, graphqlData } from "../support/graphql.ts"
import { startServe, temporaryFolder, writeFiles } from "../support/process.ts"
import { type Following, followOverSse, followOverWebSocket } from "./follow.ts"
import { checkpointOf, waitForCheckpoint } from "./network.ts"
import { CHAIN_ID, type ChainTransfer, startTokenChain, type TokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 300_000

/** Between the blocks of the moving token, in ms. */
const BLOCK_MS = 30

/** The token rests while so many transfers were not seen yet. */
const MOST_AHEAD = 60

interface Match {
  readonly event: {
    readonly block: { readonly number: number; readonly hash: string }
    readonly log: { readonly index: number }
  }
}

interface MatchItem {
  readonly position: string
  readonly match: Match
}

type FeedItem =
  | ({ readonly __typename: "MatchEmitted" } & MatchItem)
  | {
      readonly __typename: "CheckpointAdvanced"
      readonly position: string
      readonly checkpoint: { readonly cursor: { readonly primary: string; readonly secondary: number } }
    }

const MATCHES = `subscription ($after: String) {
  matches(network: "net", monitor: "all", after: $after) { position match { event } } }`
const ALL_MATCHES = `subscription ($after: String) { matches(after: $after) { position match { event } } }`
const RETRACTIONS = `subscription { retractions(network: "net", after: "0") { position matchId } }`
const CHECKPOINTS = `subscription { checkpoints(network: "net") { cursor { primary } } }`
const FEED = `subscription ($after: String) { feed(network: "net", after: $after) { __typename position
  ... on MatchEmitted { match { event } } ... on CheckpointAdvanced { checkpoint { cursor { primary secondary } } } } }`

const PAGE = `query ($after: String) { matches(first: 7, after: $after) {
  edges { node { event } } pageInfo { hasNextPage endCursor } } }`

const nameOf = ({ event }: Match): string => `${event.block.hash} ${event.log.index}`
const namesOf = (items: ReadonlyArray<MatchItem>): ReadonlyArray<string> => items.map(({ match }) => nameOf(match))
const chainNames = (transfers: ReadonlyArray<ChainTransfer>): ReadonlyArray<string> =>
  transfers.map(({ hash, index }) => `${hash} ${index}`)

const setUp = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const chain = yield* startTokenChain
  const first = (yield* chain.head) + 1
  yield* writeFiles(folder, {
    "networks/net.json": {
      id: "net",
      module: "evm-rpc",
      config: { chain_id: CHAIN_ID, urls: [chain.url], confirmations: 0, start: first, poll_interval_ms: 20 },
    },
    "monitors/all.json": { id: "all", network: "net", selector: transferSelector, sinks: [] },
  })
  return { chain, first, variables: { DATABASE_URL: `sqlite:${folder}/rows.db`, SEEDS_DIR: folder } }
})

/** Lets the token move, as fast as what it does is seen. */
const move = (chain: TokenChain, seen: () => number): Effect.Effect<never> => {
  let made = 0
  return Effect.suspend(() => {
    if (made > seen() + MOST_AHEAD) return Effect.void
    made += 2
    return chain.mine([1, 2])
  }).pipe(Effect.andThen(Effect.sleep(BLOCK_MS)), Effect.forever)
}

describe.concurrent("a subscription", () => {
  it.live(
    "that is closed and opened again misses nothing and repeats nothing, over restarts and both transports",
    () =>
      Effect.gen(function* () {
        const { chain, first, variables } = yield* setUp
        const seen: Array<MatchItem> = []
        const feed: Array<FeedItem> = []
        const moving = yield* Effect.forkScoped(move(chain, () => seen.length))
        let server = yield* startServe(variables)

        /** Follows from where the last session ended, until `enough`; then whatever had arrived is what counts. */
        const session = Effect.fnUntraced(function* (
          follow: typeof followOverWebSocket,
          enough: (open: Following<MatchItem>, feed: Following<FeedItem>) => Effect.Effect<void>,
        ) {
          const matches = yield* follow<MatchItem>(server.url, MATCHES, { after: seen.at(-1)?.position ?? "0" })
          const all = yield* follow<FeedItem>(server.url, FEED, { after: feed.at(-1)?.position ?? "0" })
          yield* enough(matches, all)
          yield* matches.close
          yield* all.close
          seen.push(...matches.items)
          feed.push(...all.items)
        }, Effect.scoped)
        const some = (matches: Following<MatchItem>, all: Following<FeedItem>) =>
          Effect.andThen(
            matches.waitFor("some matches", (items) => items.length >= 20),
            all.waitFor("some of the feed", (items) => items.length >= 20),
          )

        const retractions = yield* followOverWebSocket(server.url, RETRACTIONS)
        const checkpoints = yield* followOverWebSocket<{ cursor: { primary: string } }>(server.url, CHECKPOINTS)
        yield* session(followOverWebSocket, some)
        yield* session(followOverSse, some)
        assert.isUndefined(retractions.failure())
        assert.lengthOf(retractions.items, 0)
        // A server that ends takes its subscribers' connections with it.
        yield* session(followOverWebSocket, (matches, all) =>
          Effect.andThen(some(matches, all), Effect.asVoid(server.stop)),
        )
        const blocks = checkpoints.items.map(({ cursor }) => Number(cursor.primary))
        assert.isAbove(blocks.length, 1)
        assert.deepStrictEqual(
          blocks,
          blocks.toSorted((a, b) => a - b),
        )
        for (let block = 0; block < 5; block++) yield* chain.mine([3, 4])
        server = yield* startServe(variables)
        yield* session(followOverSse, (matches, all) => Effect.andThen(some(matches, all), server.kill))
        server = yield* startServe(variables)
        yield* Fiber.interrupt(moving)
        yield* chain.mine([8])
        yield* session(
          followOverWebSocket,
          Effect.fnUntraced(function* (matches, all) {
            // Checkpoints are shown as they advance: this one comes when both follow.
            yield* all.waitFor("the feed goes on", (items) => items.length > 0)
            yield* chain.mine([9])
            const head = yield* chain.head
            const last = chainNames(yield* chain.transfers(head))[0]
            yield* matches.waitFor("the last match", (items) => namesOf(items).includes(last!))
            yield* all.waitFor("the last checkpoint", (items) =>
              items.some((item) => "checkpoint" in item && checkpointOf(item) >= head),
            )
          }),
        )
        const expected = yield* chain.transfers(first)
        assert.deepStrictEqual(namesOf(seen), chainNames(expected))
        assert.deepStrictEqual(namesOf(feed.filter((item) => "match" in item)), chainNames(expected))
        let shown = 0
        for (const item of feed) {
          if ("match" in item) shown++
          else {
            const covered = expected.filter(({ block }) => block <= checkpointOf(item)).length
            assert.isAtLeast(shown, covered, "a checkpoint came before an item that it covers")
          }
        }
        assert.strictEqual(yield* server.stop, 0)
      }),
    TIMEOUT_MS,
  )

  it.live(
    "goes on behind the last page of the history",
    () =>
      Effect.gen(function* () {
        const { chain, first, variables } = yield* setUp
        for (let block = 0; block < 10; block++) yield* chain.mine([1, 2])
        const server = yield* startServe(variables)
        yield* waitForCheckpoint(server.url, "net", yield* chain.head)
        const paged: Array<string> = []
        let after: string | null = null
        let follows = true
        while (follows) {
          const { matches } = yield* Effect.promise(() => graphqlData(server.url, PAGE, { after }))
          paged.push(...matches.edges.map(({ node }: { node: Match }) => nameOf(node)))
          after = matches.pageInfo.endCursor
          follows = matches.pageInfo.hasNextPage
          yield* chain.mine([5])
        }
        const live = yield* followOverWebSocket<MatchItem>(server.url, ALL_MATCHES, { after })
        yield* chain.mine([6, 7])
        const expected = chainNames(yield* chain.transfers(first))
        yield* live.waitFor("the rest", (items) => paged.length + items.length >= expected.length)
        assert.isAtLeast(paged.length, 20)
        assert.deepStrictEqual([...paged, ...namesOf(live.items)], expected)
        yield* live.close
        assert.strictEqual(yield* server.stop, 0)
      }),
    TIMEOUT_MS,
  )

  it.live(
    "from a position that is no longer kept is STALE_POSITION, and the oldest one works",
    () =>
      Effect.gen(function* () {
        const { chain, first, variables } = yield* setUp
        const bounded = { ...variables, FEED_RETENTION: "5", JOURNAL_DEPTH: "2" }
        let server = yield* startServe(bounded)
        const follow = (after: string) => followOverWebSocket<MatchItem>(server.url, MATCHES, { after })
        const early = yield* follow("0")
        for (let block = 0; block < 10; block++) yield* chain.mine([1, 2])
        const names = chainNames(yield* chain.transfers(first))
        yield* early.waitFor("all matches", (items) => items.length === names.length)
        yield* waitForCheckpoint(server.url, "net", yield* chain.head)
        const [{ position }] = early.items as [MatchItem]

        // Pruning comes every ten seconds: until then the position is good, and the items behind it are shown.
        const refusal: Effect.Effect<GraphqlError> = Effect.scoped(
          Effect.gen(function* () {
            const again = yield* follow(position)
            while (again.items.length === 0 && again.failure() === undefined) yield* Effect.sleep(20)
            return again.failure() === undefined ? null : (again.failure() as ReadonlyArray<GraphqlError>)[0]!
          }),
        ).pipe(
          Effect.flatMap((error) =>
            error === null ? Effect.andThen(Effect.sleep(200), refusal) : Effect.succeed(error),
          ),
        )
        const { extensions, message } = yield* refusal
        assert.strictEqual(extensions?.code, "STALE_POSITION", message)

        // A server may still know in memory what it keeps no longer; the next one does not.
        assert.strictEqual(yield* server.stop, 0)
        server = yield* startServe(bounded)
        assert.deepStrictEqual((yield* refusal).extensions, extensions)
        const kept = yield* follow("0")
        yield* kept.waitFor("what is kept", (items) => items.length >= 5)
        const oldest = yield* follow(extensions?.oldest ?? "none")
        yield* oldest.waitFor("what is kept", (items) => items.length >= 5)
        yield* chain.mine([8])
        const now = chainNames(yield* chain.transfers(first))
        for (const { items, waitFor } of [kept, oldest]) {
          yield* waitFor("the newest", (items) => namesOf(items).at(-1) === now.at(-1))
          assert.isBelow(items.length, now.length)
          assert.deepStrictEqual(namesOf(items), now.slice(-items.length))
        }
        assert.deepStrictEqual(namesOf(kept.items), namesOf(oldest.items))
        assert.strictEqual(yield* server.stop, 0)
      }),
    TIMEOUT_MS,
  )
})
