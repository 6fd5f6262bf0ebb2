import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { launchServe, startServe, temporaryFolder, writeFiles } from "../support/process.ts"
import { type Answer, type Receiver, respond, startReceiver } from "../support/receiver.ts"
import { type Expected, faultsOf } from "./deliveries.ts"
import { waitForCheckpoint } from "./network.ts"
import { type Choices, choices, isSoak, seed } from "./seed.ts"
import { CHAIN_ID, startTokenChain, type TokenChain, transferSelector } from "./token-chain.ts"

const KILLS = isSoak ? 50 : 5
const LARGE = 500_000
const TIMEOUT_MS = isSoak ? 1_800_000 : 300_000

/** Between the blocks of the moving token, in ms. */
const BLOCK_MS = 25

/** The token rests while so many transfers were not heard of yet, so that a slow machine has no more to do than a quick one. */
const MOST_AHEAD = 150

const someTransfers = ({ between }: Choices): ReadonlyArray<number> =>
  Array.from({ length: between(1, 4) }, () => between(1, 2 * LARGE))

const move = (chain: TokenChain, receiver: Receiver, stream: number): Effect.Effect<never> => {
  const random = choices(stream)
  let made = 0
  return Effect.suspend(() => {
    if (made > at(receiver, "every").length + MOST_AHEAD) return Effect.void
    const values = someTransfers(random)
    made += values.length
    return chain.mine(values)
  }).pipe(Effect.andThen(Effect.sleep(BLOCK_MS)), Effect.forever)
}

/** Now and then something that no receiver should do. */
const moody = (stream: number): (() => Answer) => {
  const { next } = choices(stream)
  return () => {
    const mood = next()
    if (mood < 0.02) return respond(500)
    if (mood < 0.025) return { kind: "hang" }
    if (mood < 0.03) return { kind: "reset" }
    return mood < 0.05 ? respond(200, { afterMs: 100 }) : respond(200)
  }
}

const seeds = (chain: TokenChain, receiver: Receiver) => {
  const sink = (id: string) => ({
    id,
    module: "webhook",
    config: { url: `${receiver.origin}/${id}`, timeout_ms: 500 },
    retry: { max_attempts: 1_000, initial_backoff_ms: 10, max_backoff_ms: 100 },
  })
  return {
    "networks/net.json": {
      id: "net",
      module: "evm-rpc",
      config: { chain_id: CHAIN_ID, urls: [chain.url], confirmations: 0, start: "latest", poll_interval_ms: 20 },
    },
    "monitors/all.json": { id: "all", network: "net", selector: transferSelector, sinks: ["every", "both"] },
    "monitors/large.json": {
      id: "large",
      network: "net",
      selector: transferSelector,
      predicate: `args.value >= ${LARGE}`,
      sinks: ["both"],
    },
    "sinks/every.json": sink("every"),
    "sinks/both.json": sink("both"),
  }
}

/** What the two sinks must have heard of, from a block on, by the node's own word. */
const expectedFrom = Effect.fnUntraced(function* (chain: TokenChain, from: number) {
  const transfers = yield* chain.transfers(from)
  const every: ReadonlyArray<Expected> = transfers.map((transfer) => ({ monitor: "all", ...transfer }))
  const large = transfers.filter(({ value }) => value >= LARGE).map((transfer) => ({ monitor: "large", ...transfer }))
  return { every, both: [...every, ...large] }
})

const at = (receiver: Receiver, sink: string) => receiver.requests.filter(({ path }) => path === `/${sink}`)

/** The start that is stored: the block before the first one that is watched, or null. */
const storedStart = (database: string): number | null => {
  const native = new DatabaseSync(database, { readOnly: true })
  try {
    return Number(native.prepare("select checkpoint_primary from pipelines").get()?.["checkpoint_primary"] ?? null)
  } finally {
    native.close()
  }
}

/** A chain that moves, a receiver that sulks, and what a server needs to carry one to the other. */
const setUp = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const chain = yield* startTokenChain
  const receiver = yield* startReceiver()
  yield* writeFiles(folder, seeds(chain, receiver))
  const database = `${folder}/rows.db`
  const variables = { DATABASE_URL: `sqlite:${database}`, SEEDS_DIR: folder }
  const moving = yield* Effect.forkScoped(move(chain, receiver, 1))
  return { chain, receiver, database, variables, moving }
})

type World = Effect.Success<typeof setUp>

/** Stops the chain, lets a server finish, and compares what was received with what the node tells. */
const finish = Effect.fnUntraced(function* ({ chain, receiver, variables, moving }: World, from: number) {
  const server = yield* startServe(variables)
  yield* Fiber.interrupt(moving)
  yield* waitForCheckpoint(server.url, "net", yield* chain.head)
  yield* server.stop
  const expected = yield* expectedFrom(chain, from)
  assert.deepStrictEqual(faultsOf(at(receiver, "every"), expected.every), [])
  assert.deepStrictEqual(faultsOf(at(receiver, "both"), expected.both), [])
  return expected
})

describe.concurrent(`a server that is killed (BLOCKWATCHER_TEST_SEED=${seed})`, () => {
  it.live(
    `${KILLS} times, at any moment, has delivered everything in the end`,
    () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { chain, receiver, database, variables } = world
        const random = choices(2)
        const { between, chance } = random
        receiver.always(moody(3))
        let startMs = 0
        const live = Effect.fnUntraced(function* (round: number) {
          const launchedAt = Date.now()
          const server = yield* launchServe(variables)
          if (round > 0 && chance(0.3)) {
            yield* Effect.sleep(between(0, startMs))
            return yield* server.kill
          }
          const before = receiver.requests.length
          yield* server.url
          if (round === 0) startMs = Date.now() - launchedAt
          const some = between(1, 80)
          yield* server.waitUntil("some deliveries were made", () => receiver.requests.length > before + some)
          if (chance(0.3)) {
            yield* server.freeze
            for (let block = 0; block < 3; block++) yield* chain.mine(someTransfers(random))
            yield* server.thaw
          }
          yield* Effect.sleep(between(0, 120))
          yield* server.kill
        }, Effect.scoped)
        yield* live(0)
        const first = Number(JSON.parse(receiver.requests[0]!.body.toString()).event.block.number)
        for (let round = 1; round < KILLS; round++) yield* live(round)
        assert.isNotNull(storedStart(database))
        const expected = yield* finish(world, first)
        assert.isAbove(expected.every.length, KILLS)
      }),
    TIMEOUT_MS,
  )

  it.live(
    "before its first checkpoint goes on from the block that it started at",
    () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { chain, receiver, database, variables } = world
        const random = choices(4)
        receiver.always({ kind: "hang" })
        const before = yield* chain.head
        const server = yield* launchServe(variables)
        yield* server.waitUntil("the first delivery is under way", () => receiver.requests.length > 0)
        yield* Effect.sleep(random.between(0, 50))
        yield* server.kill
        const first = storedStart(database)! + 1
        const down = yield* chain.head
        assert.isAtLeast(first, before)
        assert.isAtMost(first, down)
        for (let block = 0; block < 10; block++) yield* chain.mine(someTransfers(random))
        receiver.always(moody(5))
        yield* finish(world, first)
      }),
    TIMEOUT_MS,
  )
})
