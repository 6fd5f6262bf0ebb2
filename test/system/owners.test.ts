import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { postgres } from "../support/postgres.ts"
import { type StartedServer, startServe, waitFor, writeFiles } from "../support/process.ts"
import { respond } from "../support/receiver.ts"
import { networkNow } from "./network.ts"
import { isSoak } from "./seed.ts"
import { PATHS, setUpWorld, sinkOf, transfers, type World } from "./simulated-world.ts"

const TIMEOUT_MS = 300_000

/** A process looks each second whether it may take a network over; the rest is for a machine that is busy. */
const AT_ONCE_MS = 5_000

/** The lease of sinks whose attempts are short. */
const LEASE_MS = 15_000

/** Names the process in each of its requests. */
const WHO = "x-process"

const databases = [
  ["SQLite", Effect.succeed(undefined)],
  ["PostgreSQL", Effect.flatMap(postgres, (server) => Effect.promise(() => server.database("rows")))],
] as const

const stateIs = (server: StartedServer, state: string) =>
  waitFor(`the network is ${state}`, networkNow(server.url, "net"), (network) => network.state === state)

/** Two servers over one database: the first runs the network and has caught up with it, the second stands by. */
const twoServers = Effect.fnUntraced(function* (databaseUrl: string | undefined) {
  const world = yield* setUpWorld(databaseUrl)
  const { chain, receiver, variables, caughtUp } = world
  const sink = (path: string) => {
    const { config, ...rest } = sinkOf(receiver.origin, path)
    return { ...rest, config: { ...config, headers: { [WHO]: "env:WHO" } } }
  }
  yield* writeFiles(variables.SEEDS_DIR, Object.fromEntries(PATHS.map((path) => [`sinks${path}.json`, sink(path)])))
  const start = (who: string) => startServe(variables, { env: { WHO: who } })
  chain.mine(10, transfers())
  const first = yield* start("first")
  yield* caughtUp(first.url)
  const second = yield* start("second")
  yield* stateIs(second, "STANDBY")
  receiver.always(respond(200, { afterMs: 3 }))
  return { world, first, second, start }
})

const by = ({ receiver }: World, who: string) => receiver.requests.filter(({ headers }) => headers[WHO] === who)

/** Waits until a server has sent something; answers how long that took. */
const untilSends = Effect.fnUntraced(function* (world: World, who: string) {
  const since = performance.now()
  const before = by(world, who).length
  yield* waitFor(
    `${who} sends`,
    Effect.sync(() => by(world, who).length),
    (count) => count > before,
  )
  return performance.now() - since
})

/** Mines more than is delivered soon, and waits until its delivery is under way. */
const keepBusy = Effect.fnUntraced(function* (world: World, who: string) {
  world.chain.mine(25, transfers())
  yield* untilSends(world, who)
})

/** Whether another process may write to an SQLite database. */
const isFree = (url: string): boolean => {
  const database = new DatabaseSync(url.slice("sqlite:".length))
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK")
    return true
  } catch (error) {
    if (error instanceof Error && error.message.includes("locked")) return false
    throw error
  } finally {
    database.close()
  }
}

/** Stops a server where it is. One that stands in the middle of a write to SQLite lets nobody else write, whoever owns what. */
const freezeBetweenWrites = (world: World, server: StartedServer): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* server.freeze
    const url = world.variables.DATABASE_URL
    if (!url.startsWith("sqlite:") || isFree(url)) return
    yield* server.thaw
    yield* untilSends(world, "first")
    yield* freezeBetweenWrites(world, server)
  })

/** What `who` sent after the first request of another server: nothing, but for what was on the wire, one a sink. */
const lateFrom = ({ receiver }: World, who: string, other: string) => {
  const since = receiver.requests.findIndex(({ headers }) => headers[WHO] === other)
  return receiver.requests.slice(since).filter(({ headers }) => headers[WHO] === who)
}

for (const [name, database] of databases) {
  describe.concurrent(`two servers over one ${name} database`, () => {
    it.live(
      "of which the owner is killed: the other takes over, as soon as it sees that the process has gone",
      () =>
        Effect.gen(function* () {
          const { world, first, second } = yield* twoServers(yield* database)
          assert.include(second.output.stdout, `the network is run by process ${first.pid} on`)
          yield* keepBusy(world, "first")
          yield* first.kill
          const tookMs = yield* untilSends(world, "second")
          console.info(`${name}: taken over ${Math.round(tookMs)} ms after SIGKILL`)
          assert.isBelow(tookMs, AT_ONCE_MS)
          yield* world.settled(second.url)
          assert.strictEqual(yield* second.stop, 0)
          assert.deepStrictEqual(world.faults(), [])
          assert.deepStrictEqual(lateFrom(world, "first", "second"), [])
        }),
      TIMEOUT_MS,
    )

    it.live.runIf(isSoak || name === "PostgreSQL")(
      "of which the owner is stopped by SIGTERM: the other takes over at once, and nothing is sent twice",
      () =>
        Effect.gen(function* () {
          const { world, first, second, start } = yield* twoServers(yield* database)
          yield* keepBusy(world, "first")
          assert.strictEqual(yield* first.stop, 0)
          world.chain.reorg(3, { length: 5, logs: transfers(1) })
          const tookMs = yield* untilSends(world, "second")
          console.info(`${name}: taken over ${Math.round(tookMs)} ms after the end by SIGTERM`)
          assert.isBelow(tookMs, AT_ONCE_MS)
          const third = yield* start("third")
          yield* stateIs(third, "STANDBY")
          yield* world.settled(second.url)
          assert.strictEqual(yield* second.stop, 0)
          yield* stateIs(third, "RUNNING")
          assert.strictEqual(yield* third.stop, 0)
          assert.deepStrictEqual(world.faults(), [])
          const ids = world.receiver.requests.map(({ path, headers }) => `${path} ${headers["webhook-id"]}`)
          assert.strictEqual(new Set(ids).size, ids.length)
        }),
      TIMEOUT_MS,
    )

    it.live.runIf(isSoak || name === "SQLite")(
      "of which the owner stands still for longer than its lease: it sends nothing after the other took over",
      () =>
        Effect.gen(function* () {
          const { world, first, second } = yield* twoServers(yield* database)
          const { chain } = world
          yield* keepBusy(world, "first")
          yield* freezeBetweenWrites(world, first)
          const sent = by(world, "first").length
          chain.reorg(20, { length: 22, logs: transfers(1) })
          const tookMs = yield* untilSends(world, "second")
          console.info(`${name}: taken over ${Math.round(tookMs)} ms after SIGSTOP`)
          assert.isAbove(tookMs, LEASE_MS / 2)
          yield* world.settled(second.url)
          yield* first.thaw
          yield* stateIs(first, "STANDBY")
          chain.reorg(2, { length: 4, logs: transfers(2) })
          yield* world.settled(second.url)
          const late = lateFrom(world, "first", "second")
          assert.isAtMost(late.length, PATHS.length)
          assert.strictEqual(new Set(late.map(({ path }) => path)).size, late.length)
          assert.isAtMost(by(world, "first").length, sent + PATHS.length)
          assert.strictEqual(yield* first.stop, 0)
          assert.strictEqual(yield* second.stop, 0)
          assert.deepStrictEqual(world.faults(), [])
        }),
      TIMEOUT_MS,
    )
  })
}
