import { rm } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { layerSqlite } from "../../core/storage/sqlite/layer.ts"
import { Storage } from "../../core/storage/storage.ts"
import { type Failpoint, news, onRequest, steps, stepsOf } from "../support/failpoints.ts"
import { postgres } from "../support/postgres.ts"
import { launchServe, type Server, waitFor, waitUntil, writeFiles } from "../support/process.ts"
import { networkNow } from "./network.ts"
import { isSoak } from "./seed.ts"
import {
  mutate,
  PATHS,
  PAUSE,
  PUT_SINK,
  RESUME,
  rewindTo,
  setUpWorld,
  sinkOf,
  transfers,
  type World,
} from "./simulated-world.ts"

const TIMEOUT_MS = isSoak ? 7_200_000 : 600_000

/** Each point is passed so many times before the kill. */
const PASSINGS = isSoak ? [1, 2, 3, 5, 8] : [1]

/** Everything in a network's life takes less time than this. */
const LIFE_MS = 60_000

/** The end of a process is seen within this time. */
const END_MS = 5_000

const PROGRAM = join(import.meta.dirname, "../support/failpoint-server.ts")

/** Steps that only a start takes; the first of them only the first start. */
const STARTING = ["begin", "claim"]

/** Steps that a server takes once. */
const ONCE = new Set([...STARTING, "release"])

/** Steps that a server takes by the clock, whatever it goes through. */
const BY_CLOCK = new Set(["renew", "prune"])

const stepOf = ({ point }: Failpoint): string => point.split(":")[0]!

/** Starts a server, whose failpoint is set before, or later by `arm`. */
const launch = Effect.fnUntraced(function* (world: World, failpoint: Failpoint | null) {
  const file = join(world.folder, "failpoint")
  yield* Effect.promise(() => rm(file, { force: true }))
  if (failpoint !== null) yield* writeFiles(world.folder, { failpoint })
  return yield* launchServe(world.variables, { program: PROGRAM, env: { FAILPOINT: file } })
})

const arm = Effect.fnUntraced(function* (world: World, server: Server, failpoint: Failpoint) {
  yield* writeFiles(world.folder, { failpoint })
  process.kill(server.pid, "SIGUSR2")
  yield* server.waitUntil("its failpoint is set", () => server.output.stderr.includes(news.set(failpoint)))
})

/** Everything that a network can go through while its server is up. */
const live = Effect.fnUntraced(function* ({ chain, receiver, caughtUp }: World, server: Server) {
  const url = yield* server.url
  chain.mine(2, transfers())
  yield* caughtUp(url)
  yield* mutate(url, PAUSE)
  chain.mine(2, transfers())
  yield* waitFor("the network rests", networkNow(url, "net"), ({ state }) => state === "PAUSED")
  yield* mutate(url, RESUME)
  // Another one each time.
  const input = sinkOf(receiver.origin, PATHS[0], 2_000 + chain.head.number)
  yield* mutate(url, PUT_SINK, { input })
  yield* caughtUp(url)
  const fork = chain.fork()
  chain.reorg(4, { length: 6, logs: transfers(1) })
  yield* caughtUp(url)
  yield* rewindTo(url, chain.head.number - 3)
  chain.mine(1, transfers())
  yield* caughtUp(url)
  chain.switchTo(fork).mine(6, transfers(2))
  yield* caughtUp(url)
})

/** Lets a server live until it comes to its failpoint. */
const liveUntil = Effect.fnUntraced(function* (world: World, server: Server, failpoint: Failpoint) {
  const step = stepOf(failpoint)
  const again: Effect.Effect<never> = Effect.suspend(() => Effect.andThen(live(world, server), again))
  const life = step === "release" ? server.stop : BY_CLOCK.has(step) ? Effect.never : again
  const told = life.pipe(
    // What is told to a server that was just killed fails, maybe before its end is seen.
    Effect.catchCause((cause) => Effect.andThen(Effect.sleep(END_MS), Effect.failCause(cause))),
  )
  const reached = () => server.output.stderr.includes(news.reached(failpoint))
  yield* Effect.raceFirst(waitUntil("it comes to its failpoint", reached, failpoint.passing * LIFE_MS), told)
  assert.isTrue(reached())
})

/** The other fork, then the first one again; whoever looks at them may see either, or both. */
const flip = Effect.fnUntraced(function* ({ chain }: World, betweenMs: number) {
  const fork = chain.fork()
  chain.reorg(5, { length: 7, logs: transfers(3) })
  yield* Effect.sleep(betweenMs)
  chain.switchTo(fork).mine(4, transfers(4))
})

/** Kills a server at a point, and flips the chain; answers the next server once all has settled. */
const killAt = Effect.fnUntraced(function* (world: World, running: Server | null, failpoint: Failpoint, round: number) {
  let server = running
  if (STARTING.includes(stepOf(failpoint))) {
    if (server !== null) yield* server.stop
    server = yield* launch(world, failpoint)
  } else {
    server ??= yield* launch(world, null)
    yield* server.url
    yield* arm(world, server, failpoint)
  }
  yield* liveUntil(world, server, failpoint)
  assert.strictEqual(yield* server.ended, "SIGKILL")
  const isDown = round % 2 === 0
  if (isDown) yield* flip(world, 0)
  const next = yield* launch(world, null)
  const url = yield* next.url
  yield* mutate(url, RESUME)
  if (!isDown) yield* flip(world, 100)
  yield* world.settled(url)
  assert.deepStrictEqual(world.faults(), [])
  return next
})

const killAtEach = Effect.fnUntraced(function* (failpoints: ReadonlyArray<Failpoint>, databaseUrl?: string) {
  const world = yield* setUpWorld(databaseUrl)
  world.chain.mine(12, transfers())
  let server: Server | null = null
  for (const [round, failpoint] of failpoints.entries()) {
    server = yield* killAt(world, server, failpoint, round).pipe(
      Effect.catchDefect((cause) =>
        Effect.die(new Error(`killed at ${failpoint.point}, passing ${failpoint.passing}: ${cause}`, { cause })),
      ),
    )
  }
  if (server !== null) yield* server.stop
  assert.deepStrictEqual(world.faults(), [])
})

/** Freezes a server at a point until another one has taken over and all has settled; then they change back. */
const freezeAt = Effect.fnUntraced(function* (failpoint: Failpoint, databaseUrl?: string) {
  const world = yield* setUpWorld(databaseUrl)
  const { chain } = world
  chain.mine(12, transfers())
  const frozen = yield* launch(world, null)
  yield* frozen.url
  yield* arm(world, frozen, failpoint)
  yield* liveUntil(world, frozen, failpoint)
  yield* flip(world, 0)
  const other = yield* launch(world, null)
  const otherUrl = yield* other.url
  yield* mutate(otherUrl, RESUME)
  yield* world.settled(otherUrl)
  yield* frozen.thaw
  const url = yield* frozen.url
  yield* waitFor("it stands by", networkNow(url, "net"), ({ state }) => state === "STANDBY")
  yield* flip(world, 0)
  yield* world.settled(otherUrl)
  yield* other.stop
  yield* flip(world, 0)
  yield* world.settled(url)
  yield* frozen.stop
  assert.deepStrictEqual(world.faults(), [])
})

/** Asks a server to end that hangs at a point; the next one goes on. */
const hangAt = Effect.fnUntraced(function* (failpoint: Failpoint, databaseUrl?: string) {
  const impatient = { DRAIN_TIMEOUT_MS: "500" }
  const made = yield* setUpWorld(databaseUrl)
  const world = { ...made, variables: { ...made.variables, ...impatient } }
  world.chain.mine(12, transfers())
  const hanging = yield* launch(world, null)
  yield* hanging.url
  yield* arm(world, hanging, failpoint)
  yield* liveUntil(world, hanging, failpoint)
  yield* hanging.stop
  yield* flip(world, 0)
  const next = yield* launch(world, null)
  const url = yield* next.url
  yield* mutate(url, RESUME)
  yield* world.settled(url)
  yield* next.stop
  assert.deepStrictEqual(world.faults(), [])
})

const failpointsOf = (side: "before" | "after"): ReadonlyArray<Failpoint> =>
  [...STARTING, ...steps.filter((step) => !STARTING.includes(step) && !onRequest.has(step))].flatMap((step) =>
    PASSINGS.filter((passing) => passing === 1 || !ONCE.has(step)).map((passing): Failpoint => ({
      point: `${step}:${side}`,
      passing,
      fate: "kill",
    })),
  )

/** The steps by turns, so that two worlds go through them at the same time: before and after each, or one of the two. */
const failpointsByTurns = (() => {
  const before = failpointsOf("before")
  const after = failpointsOf("after")
  if (isSoak) return [before, after]
  const each = before.map((failpoint, i) => (i % 2 === 0 ? failpoint : after[i]!))
  return [each.filter((_, i) => i % 2 === 0), each.filter((_, i) => i % 2 === 1)]
})()

const both = (names: ReadonlyArray<string>) => names.flatMap((step) => [`${step}:before`, `${step}:after`])
const FLOW = both(["mint", "offer", "settle", "checkpoint", "invalidate", "retract", "rewind"])
const FROZEN = isSoak ? FLOW : ["retract:before"]
const HANGING = isSoak ? [...FLOW, ...both(["deliver"])] : ["settle:before"]

const databases = [
  ["SQLite", Effect.succeed(undefined)],
  ["PostgreSQL", Effect.flatMap(postgres, (server) => Effect.promise(() => server.database("rows")))],
] as const

describe("the list of failpoints", () => {
  it.effect("tells of each operation of the storage which durable steps it takes", () =>
    Effect.gen(function* () {
      const storage = Context.get(yield* Layer.build(layerSqlite({ path: ":memory:" })), Storage)
      assert.sameMembers(Object.keys(stepsOf), Object.keys(storage))
    }),
  )
})

for (const [name, database] of isSoak ? databases : databases.slice(0, 1)) {
  describe.concurrent(`a chain that flips over ${name}`, () => {
    for (const [turn, failpoints] of failpointsByTurns.entries()) {
      it.live(
        `after its server was killed at each durable step, ${turn + 1} of ${failpointsByTurns.length}: nothing is lost and nothing untrue stays`,
        () => Effect.flatMap(database, (url) => killAtEach(failpoints, url)),
        TIMEOUT_MS,
      )
    }
    for (const point of FROZEN) {
      it.live(
        `while its server is frozen at ${point} and another takes over: nothing is lost and nothing untrue stays`,
        () => Effect.flatMap(database, (url) => freezeAt({ point, passing: 1, fate: "freeze" }, url)),
        TIMEOUT_MS,
      )
    }
    for (const point of HANGING) {
      it.live(
        `after its server hung at ${point} and was asked to end: nothing is lost and nothing untrue stays`,
        () => Effect.flatMap(database, (url) => hangAt({ point, passing: 1, fate: "hang" }, url)),
        TIMEOUT_MS,
      )
    }
  })
}
