import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Address, createTestClient, encodeFunctionData, type Hex, http, publicActions } from "viem"
import { foundry } from "viem/chains"
import { TOKEN_ABI, TOKEN_ADDRESS } from "../../server/devnet/token.ts"
import { byPhases, consumerFaults, type Phase } from "../support/consumer-faults.ts"
import { deliveriesAt, heldAfter, heldFaults, type Place } from "../support/consumer.ts"
import { startServe, temporaryFolder, waitFor, waitUntil, writeFiles } from "../support/process.ts"
import { type Received, respond, startReceiver } from "../support/receiver.ts"
import { followOverWebSocket } from "./follow.ts"
import { waitForCheckpoint } from "./network.ts"
import { mutate, PUT_NETWORK, rewindTo } from "./simulated-world.ts"
import { CHAIN_ID, startTokenChain, transferSelector } from "./token-chain.ts"

const TIMEOUT_MS = 300_000

const PATHS = ["/quick", "/slow"] as const

interface FeedItem {
  readonly __typename: "MatchEmitted" | "MatchRetracted"
  readonly match?: { readonly id: string }
  readonly matchId?: string
}

const FEED = `subscription { feed(network: "net", after: "0") { __typename
  ... on MatchEmitted { match { id } } ... on MatchRetracted { matchId } } }`

/** Something that was told, whether by a sink or by the feed. */
interface Told {
  readonly kind: "match" | "retracted"
  readonly id: string
}

const toldBy = (items: ReadonlyArray<FeedItem>): ReadonlyArray<Told> =>
  items.flatMap(({ __typename, match, matchId }): ReadonlyArray<Told> => {
    if (__typename === "MatchEmitted") return [{ kind: "match", id: match!.id }]
    return __typename === "MatchRetracted" ? [{ kind: "retracted", id: matchId! }] : []
  })

const idsOf = (told: ReadonlyArray<Told>, kind: Told["kind"]): ReadonlyArray<string> =>
  told.filter((one) => one.kind === kind).map(({ id }) => id)

/** The transaction that a match stands in, by the match's id. */
const transactions = (requests: ReadonlyArray<Received>): ReadonlyMap<string, string> =>
  new Map(
    requests.flatMap(({ body }) => {
      const { type, id, event } = JSON.parse(body.toString())
      return type === "match" ? [[id, event.transaction.hash] as const] : []
    }),
  )

interface Reorg {
  readonly Parameters: [depth: number, transactions: ReadonlyArray<readonly [transaction: unknown, block: number]>]
  readonly ReturnType: null
}

interface RawTransaction {
  readonly Parameters: [hash: Hex]
  readonly ReturnType: Hex
}

const setUp = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const chain = yield* startTokenChain
  const receiver = yield* startReceiver()
  receiver.always(({ path }) => (path === "/slow" ? respond(200, { afterMs: 10 }) : respond(200)))
  const first = (yield* chain.head) + 1
  const network = (pollMs: number) => ({
    id: "net",
    module: "evm-rpc",
    config: { chain_id: CHAIN_ID, urls: [chain.url], confirmations: 0, start: first, poll_interval_ms: pollMs },
  })
  yield* writeFiles(folder, {
    "networks/net.json": network(20),
    "monitors/all.json": { id: "all", network: "net", selector: transferSelector, sinks: ["quick", "slow"] },
    ...Object.fromEntries(
      PATHS.map((path) => [
        `sinks${path}.json`,
        { id: path.slice(1), module: "webhook", config: { url: `${receiver.origin}${path}` } },
      ]),
    ),
  })
  const client = createTestClient({ mode: "anvil", chain: foundry, transport: http(chain.url), cacheTime: 0 }).extend(
    publicActions,
  )
  const accounts = yield* Effect.promise(() => client.request<any>({ method: "eth_accounts" } as any))
  const server = yield* startServe({ DATABASE_URL: `sqlite:${folder}/rows.db`, SEEDS_DIR: folder })
  const feed = yield* followOverWebSocket<FeedItem>(server.url, FEED)
  const canonical = Effect.map(chain.transfers(first), (found) =>
    found.map(({ block, hash, index }): Place => ({ monitor: "all", block, hash, index })),
  )
  const hash = (block: number) => Effect.promise(() => client.getBlock({ blockNumber: BigInt(block) }))
  const tellers = () => [...PATHS.map((path) => deliveriesAt(receiver.requests, path)), toldBy(feed.items)]

  return {
    chain,
    receiver,
    server,
    network,
    tellers,
    canonical,
    hashesFrom: Effect.fnUntraced(function* (from: number) {
      const head = yield* chain.head
      const blocks = yield* Effect.forEach(
        Array.from({ length: head - from + 1 }, (_, i) => from + i),
        hash,
      )
      return blocks.map((block) => block.hash as string)
    }),
    /** Waits until both sinks hold what is canonical, and the feed has told as much as each of them. */
    caughtUp: Effect.gen(function* () {
      const places = yield* canonical
      const missing = () =>
        PATHS.flatMap((path) => heldFaults(heldAfter(deliveriesAt(receiver.requests, path)), places))
      yield* waitFor("the sinks hold what is canonical", Effect.sync(missing), (faults) => faults.length === 0)
      yield* waitUntil("the feed has told as much", () => new Set(tellers().map(({ length }) => length)).size === 1)
    }),
    /**
     * Replaces the newest blocks. What the first of them held is mined again, the very transactions, in the last of the
     * new ones; another transfer joins each of these.
     */
    reorganise: Effect.fnUntraced(function* (depth: number) {
      const head = yield* chain.head
      const { transactions: again } = yield* hash(head - depth + 1)
      const raw = yield* Effect.forEach(again, (transaction) =>
        Effect.promise(() =>
          client.request<RawTransaction>({ method: "debug_getRawTransaction" as any, params: [transaction] } as any),
        ),
      )
      const other = (value: number) => ({
        from: accounts[8] as Address,
        to: TOKEN_ADDRESS,
        data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [accounts[1], BigInt(value)] }),
      })
      yield* Effect.promise(() =>
        client.request<Reorg>({
          method: "anvil_reorg",
          params: [
            depth,
            [
              ...raw.map((transaction) => [transaction, depth - 1] as const),
              ...Array.from({ length: depth }, (_, block) => [other(1_000 + block), block] as const),
            ],
          ],
        }),
      )
      return again
    }),
  }
})

describe.concurrent("a reorganisation of a real chain", () => {
  it.live(
    "takes back what stood behind the fork and nothing else, before anything that replaces it",
    () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { chain, receiver, server, tellers } = world
        const phases: Array<Phase> = []
        for (const depth of [1, 3, 20]) {
          for (let block = 0; block < depth + 2; block++) yield* chain.mine([depth * 100 + block, 7])
          yield* world.caughtUp
          const before = yield* world.canonical
          const fork = (yield* chain.head) - depth
          const gone = yield* world.hashesFrom(fork + 1)
          const held = heldAfter(deliveriesAt(receiver.requests, PATHS[0]))
          const behind = [...held].flatMap(([id, { block }]) => (block > fork ? [id] : []))
          assert.strictEqual(behind.length, 2 * depth)
          const marks = tellers().map(({ length }) => length)

          const again = yield* world.reorganise(depth)
          yield* world.caughtUp
          phases.push({ gone, came: yield* world.hashesFrom(fork + 1) })

          const after = yield* world.canonical
          const kept = before.filter(({ block }) => block <= fork)
          assert.deepStrictEqual(after.slice(0, kept.length), kept)
          const replaced = after.length - kept.length
          for (const [i, teller] of tellers().entries()) {
            const news = teller.slice(marks[i])
            assert.deepStrictEqual(
              news.map(({ kind }) => kind),
              [...behind.map(() => "retracted"), ...Array.from({ length: replaced }, () => "match")],
            )
            assert.sameMembers([...idsOf(news, "retracted")], behind)
            assert.strictEqual(new Set(idsOf(teller, "match")).size, idsOf(teller, "match").length)
          }
          const found = [...transactions(receiver.requests)]
          for (const hash of again) {
            const ids = found.flatMap(([id, transaction]) => (transaction === hash ? [id] : []))
            assert.strictEqual(ids.length, 2, `ids of ${hash}`)
          }
        }
        yield* server.stop
        const canonical = yield* world.canonical
        for (const path of PATHS) {
          assert.deepStrictEqual(
            consumerFaults(receiver.requests, path, { canonical, areOnOneFork: byPhases(phases) }),
            [],
          )
        }
      }),
    TIMEOUT_MS,
  )

  it.live(
    "is what gives other ids: a block that is read again gives the same",
    () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { chain, server, tellers } = world
        for (let block = 0; block < 6; block++) yield* chain.mine([block, 7])
        yield* world.caughtUp
        yield* world.reorganise(2)
        yield* world.caughtUp
        const marks = tellers().map(({ length }) => length)

        yield* mutate(server.url, PUT_NETWORK, {
          input: world.network(25),
        })
        yield* chain.mine([8])
        yield* world.caughtUp
        for (const [i, teller] of tellers().entries()) {
          assert.deepStrictEqual(
            teller.slice(marks[i]).map(({ kind }) => kind),
            ["match"],
          )
        }

        const head = yield* chain.head
        yield* waitForCheckpoint(server.url, "net", head)
        const behind = (yield* world.canonical).filter(({ block }) => block > head - 4).length
        yield* rewindTo(server.url, head - 4)
        yield* waitUntil("all is told again", () =>
          tellers().every((teller, i) => teller.length === marks[i]! + 1 + 2 * behind),
        )
        for (const [i, teller] of tellers().entries()) {
          const news = teller.slice(marks[i]! + 1)
          assert.deepStrictEqual(idsOf(news.slice(behind), "match"), idsOf(news.slice(0, behind), "retracted"))
        }
      }),
    TIMEOUT_MS,
  )
})
