import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { graphql } from "../support/graphql.ts"
import { deliveriesAt } from "../support/consumer.ts"
import { launchServe, type Process, type Server, startServe, waitUntil } from "../support/process.ts"
import { type Answer, type Receiver, respond } from "../support/receiver.ts"
import type { ChainView, LogSpec } from "../../server/devnet/simulated/view.ts"
import { type Choices, choices, isSoak, seed } from "./seed.ts"
import { PATHS, REWIND, rewindTo, setUpWorld, transfers, type World } from "./simulated-world.ts"

const TIMEOUT_MS = 300_000

const SEQUENCES = isSoak ? 100 : 2
const STEPS = isSoak ? 60 : 25

/** Forks are returned to while they are no further back than so many blocks, which the journal holds. */
const DEEPEST = 15

const told = ({ receiver }: World, path: string): ReadonlyArray<string> =>
  deliveriesAt(receiver.requests, path).map(({ webhookId }) => webhookId)

/** The ids of what stands behind a block, as a path was told of it. */
const idsBehind = ({ receiver }: World, path: string, block: number): ReadonlyArray<string> =>
  deliveriesAt(receiver.requests, path).flatMap((one) =>
    one.kind === "match" && one.place.block > block && one.life === 1 ? [one.id] : [],
  )

/** The server is killed when the first request arrives that `isLast` holds for; that one is answered all the same. */
const killAtArrival = (receiver: Receiver, { pid }: Process, isLast: (body: string) => boolean) =>
  receiver.always(({ body, path }) => {
    if (path === PATHS[0] && isLast(body.toString())) process.kill(pid, "SIGKILL")
    return respond(200)
  })

const isOfBlock = (block: number) => (body: string) => JSON.parse(body).event?.block.number === block

describe.concurrent("a consumer that applies what it receives in order", () => {
  it.live(
    "holds what is canonical when a chain flips to another fork and back, each time by the next life",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpWorld()
        const { chain } = world
        chain.mine(10, transfers())
        const server = yield* startServe(world.variables)
        yield* world.caughtUp(server.url)
        const a = chain.fork()
        const [path] = PATHS
        const ids = idsBehind(world, path, 7)
        chain.reorg(3, { length: 4, logs: transfers(1) })
        yield* world.caughtUp(server.url)
        const b = chain.fork()
        const mark = told(world, path).length
        const others = idsBehind(world, path, 7).filter((id) => !ids.includes(id))
        chain.switchTo(a).mine(2, transfers())
        yield* world.settled(server.url)
        const back = told(world, path).slice(mark)
        assert.deepStrictEqual(back.slice(0, others.length + ids.length), [
          ...others.map((id) => `${id}-r`),
          ...ids.map((id) => `${id}-2`),
        ])
        chain.switchTo(b).mine(4, transfers())
        yield* world.settled(server.url)
        yield* server.stop
        assert.deepStrictEqual(world.faults(), [])
        assert.includeMembers(
          [...told(world, path)],
          [...ids.map((id) => `${id}-2-r`), ...others.map((id) => `${id}-2`)],
        )
      }),
    TIMEOUT_MS,
  )

  it.live(
    "holds what is canonical after an operator's rewind over it, twice",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpWorld()
        world.chain.mine(10, transfers())
        const server = yield* startServe(world.variables)
        yield* world.settled(server.url)
        const ids = PATHS.map((path) => idsBehind(world, path, 6))
        for (const life of [1, 2]) {
          yield* rewindTo(server.url, 6)
          yield* waitUntil("all is told again", () =>
            PATHS.every((path, i) => told(world, path).includes(`${ids[i]!.at(-1)}-${life + 1}`)),
          )
          yield* world.settled(server.url)
        }
        yield* server.stop
        assert.deepStrictEqual(world.faults(), [])
        for (const [i, path] of PATHS.entries()) {
          assert.deepStrictEqual(told(world, path).slice(-4 * ids[i]!.length), [
            ...ids[i]!.map((id) => `${id}-r`),
            ...ids[i]!.map((id) => `${id}-2`),
            ...ids[i]!.map((id) => `${id}-2-r`),
            ...ids[i]!.map((id) => `${id}-3`),
          ])
        }
      }),
    TIMEOUT_MS,
  )

  it.live(
    "is told that a match is taken back whose acceptance nobody recorded, also when it was replaced while nobody looked",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpWorld()
        const { chain, receiver } = world
        chain.mine(6, transfers())
        const first = yield* startServe(world.variables)
        yield* world.caughtUp(first.url)
        const block = chain.head.number + 2
        killAtArrival(receiver, first, isOfBlock(block))
        chain.mine(3, transfers())
        yield* first.ended
        const [path] = PATHS
        const unrecorded = told(world, path).at(-1)!
        chain.reorg(3, { length: 4, logs: transfers(1) })
        // Its acceptance never gets known.
        receiver.always(({ headers }) => respond(headers["webhook-id"] === unrecorded ? 500 : 200))
        const second = yield* startServe(world.variables)
        yield* world.settled(second.url)
        assert.include(told(world, path), `${unrecorded}-r`)
        yield* second.stop
        assert.deepStrictEqual(world.faults(), [])
      }),
    TIMEOUT_MS,
  )
})

/** A server that is there or not, over a chain whose forks are remembered. */
const makePlay = (world: World, { between, chance, next }: Choices) => {
  const { chain, receiver } = world
  const forks: Array<ChainView> = []
  let branch = 1
  let running: { readonly server: Server; readonly scope: Scope.Closeable } | null = null

  const logs = (): ((block: number) => ReadonlyArray<LogSpec>) => transfers(chance(0.5) ? 0 : branch++)
  const remember = () => {
    forks.push(chain.fork())
    if (forks.length > 5) forks.shift()
  }
  const start = Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    running = { server: yield* Scope.provide(launchServe(world.variables), scope), scope }
  })
  const end = Effect.suspend(() => {
    const ended = running
    running = null
    return ended === null ? Effect.void : Scope.close(ended.scope, Exit.void)
  })
  const answer = (mood: Answer) =>
    Effect.sync(() => {
      const path = PATHS[between(0, 1)]
      receiver.always((request) => (request.path === path ? mood : respond(200)))
    })

  const steps: Readonly<Record<string, Effect.Effect<void, never, Scope.Scope>>> = {
    mine: Effect.sync(() => void chain.mine(between(1, 4), logs())),
    reorganise: Effect.sync(() => {
      const depth = Math.min(between(1, 6), chain.head.number - 1)
      remember()
      chain.reorg(depth, { length: depth + between(0, 2), logs: chance(0.3) ? "same" : logs() })
    }),
    flip: Effect.sync(() => {
      const near = forks.filter((fork) => {
        const shared = fork.fromGenesis.findLastIndex((block) => chain.isCanonical(block))
        return chain.head.number - shared <= DEEPEST && fork.head.number - shared <= DEEPEST
      })
      const fork = near[between(0, near.length - 1)]
      if (fork === undefined) return
      remember()
      chain.switchTo(fork).mine(between(0, 3), logs())
    }),
    kill: Effect.suspend(() => (running === null ? Effect.void : running.server.kill)).pipe(Effect.andThen(end)),
    stop: Effect.suspend(() => (running === null ? Effect.void : Effect.asVoid(running.server.stop))).pipe(
      Effect.andThen(end),
    ),
    // Refused where it is behind no checkpoint.
    rewind: Effect.suspend(() => {
      if (running === null) return Effect.void
      const to = { primary: `${Math.max(0, chain.head.number - between(1, 8))}` }
      return Effect.flatMap(running.server.url, (url) => Effect.promise(() => graphql(url, REWIND, { to })))
    }),
    fail: answer(respond(500)),
    slow: answer(respond(200, { afterMs: 40 })),
    reset: answer({ kind: "reset" }),
    heal: Effect.sync(() => receiver.always(respond(200))),
  }
  const weights = Object.entries({
    mine: 6,
    reorganise: 4,
    flip: 4,
    kill: 2,
    stop: 0.5,
    rewind: 1,
    fail: 1,
    slow: 1,
    reset: 0.5,
    heal: 2,
  })

  const choose = (): string => {
    let left = next() * weights.reduce((sum, [, weight]) => sum + weight, 0)
    return weights.find(([, weight]) => (left -= weight) < 0)![0]
  }

  return {
    step: Effect.gen(function* () {
      const name = choose()
      yield* steps[name]!
      if (running === null && chance(0.7)) yield* start
      yield* Effect.sleep(between(0, chance(0.2) ? 1_500 : 200))
      return name
    }),
    /** Heals everything, and waits until all has settled. */
    finish: Effect.gen(function* () {
      yield* steps["heal"]!
      if (running === null) yield* start
      const { server } = running!
      const highest = Math.max(...forks.map(({ head }) => head.number))
      chain.mine(Math.max(1, highest - chain.head.number + 1), transfers())
      yield* world.settled(yield* server.url)
      yield* server.stop
    }),
  }
}

describe.concurrent(`a chain that is reorganised and flips under a server that is killed (BLOCKWATCHER_TEST_SEED=${seed})`, () => {
  for (let sequence = 0; sequence < SEQUENCES; sequence++) {
    it.live(
      `leaves consumers with what is canonical (${sequence})`,
      () =>
        Effect.gen(function* () {
          const world = yield* setUpWorld()
          world.chain.mine(8, transfers())
          const play = makePlay(world, choices(10 + sequence))
          const played: Array<string> = []
          for (let step = 0; step < STEPS; step++) played.push(yield* play.step)
          yield* play.finish
          assert.deepStrictEqual(world.faults(), [], played.join(", "))
        }),
      TIMEOUT_MS,
    )
  }
})
