import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule, Stream } from "effect"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { StorageError } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { waitFor } from "../../../support/process.ts"
import { at, batch, lease, match, sink } from "../builders.ts"
import { proxy } from "./proxy.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

type Service = Storage["Service"]

const use = <A, E, R>(url: string, body: (storage: Service) => Effect.Effect<A, E, R>) =>
  Storage.use(body).pipe(Effect.provide(layerPostgres({ url }), { local: true }))

const started = Effect.fnUntraced(function* (storage: Service) {
  const owner = yield* storage.claim("net", lease())
  yield* storage.begin(owner, at(0))
  return owner
})

const owed = (storage: Service) => storage.owed("net", "log", { afterSeq: 0, limit: 10_000 })

/** Repeats what may be repeated, as the engine does. */
const persist = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.retry(effect, {
    while: (error) => error instanceof StorageError && error.retryable,
    schedule: Schedule.spaced("50 millis"),
  })

describe("a database that goes away", () => {
  it.live("in the middle of writes is taken up again when it returns, and nothing that was acknowledged is lost", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          const acknowledged: Array<string> = []
          const failed: Array<StorageError> = []
          let n = 0
          const mint = Effect.suspend(() => storage.mint(owner, batch([match(at(++n))]))).pipe(
            Effect.map(({ rows }) => void acknowledged.push(...rows.map(({ matchId }) => matchId))),
            Effect.catchTag("StorageError", (error) => Effect.as(Effect.sleep("20 millis"), void failed.push(error))),
          )
          const writing = yield* Effect.all(Array.from({ length: 4 }, () => Effect.forkChild(Effect.forever(mint))))
          yield* waitFor(
            "some are minted",
            Effect.sync(() => acknowledged.length),
            (count) => count > 20,
          )
          yield* Effect.promise(() => postgres.server.stop())
          yield* waitFor(
            "writes fail",
            Effect.sync(() => failed.length),
            (count) => count > 4,
          )
          const error = yield* Effect.flip(storage.pipeline("net"))
          assert.deepInclude(error, { _tag: "StorageError", operation: "pipeline", retryable: true })
          assert.deepInclude(yield* Effect.flip(storage.resources), { operation: "resources", retryable: true })
          assert.deepInclude(yield* Effect.flip(storage.change({ putSinks: [sink("log")] })), { retryable: true })
          const before = acknowledged.length
          yield* Effect.promise(() => postgres.server.resume())
          yield* waitFor(
            "writes go on",
            Effect.sync(() => acknowledged.length),
            (count) => count > before + 20,
          )
          yield* Effect.forEach(writing, Fiber.interrupt)
          yield* storage.change({ putSinks: [sink("log")] })
          for (const { retryable, reason } of failed)
            assert.strictEqual(retryable, !reason.includes("not known"), reason)
          const stored = (yield* owed(storage)).map(({ matchId }) => matchId)
          assert.includeMembers(stored, acknowledged)
          assert.strictEqual(new Set(stored).size, stored.length)
        }),
      )
    }),
  )

  it.live("is heard of again by the feed when it returns", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          yield* Effect.promise(() => postgres.server.stop())
          yield* Effect.flip(storage.pipeline("net"))
          yield* Effect.promise(() => postgres.server.resume())
          const told = yield* Deferred.make<void>()
          yield* Effect.forkChild(storage.feedGrowth.pipe(Stream.runForEach(() => Deferred.succeed(told, undefined))), {
            startImmediately: true,
          })
          let n = 0
          const mint = Effect.suspend(() => persist(storage.mint(owner, batch([match(at(++n))]))))
          yield* waitFor("it is told", Effect.andThen(mint, Deferred.isDone(told)), (done) => done)
        }),
      )
    }),
  )

  it.live("while its connections stay up shows as an error, and not as a wait without end", () =>
    Effect.gen(function* () {
      const url = yield* postgres.database
      yield* use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          yield* storage.pipeline("net")
          yield* Effect.promise(() => postgres.server.freeze())
          const errors = yield* Effect.all(
            [
              storage.mint(owner, batch([match(at(1))])),
              storage.settle(owner, { outcomes: [], offered: [1] }),
              storage.pipeline("net"),
              storage.resources,
              storage.change({ putSinks: [sink("log")] }),
            ].map((call: Effect.Effect<unknown, unknown>) => Effect.flip(call)),
            { concurrency: "unbounded" },
          ).pipe(Effect.timeout("25 seconds"), Effect.ensuring(Effect.sync(() => postgres.server.thaw())))
          for (const error of errors) assert.deepInclude(error, { _tag: "StorageError", retryable: true })
          yield* persist(storage.mint(owner, batch([match(at(1))])))
        }),
      )
    }),
  )
})

describe("a server that falls silent", () => {
  it.live.each([
    ["when it is asked for the first time", "pg_database"],
    ["while tables are made", "create table networks"],
  ])("%s does not keep the program from ending", ([, marker]) =>
    Effect.gen(function* () {
      const through = yield* proxy(yield* postgres.database)
      through.fallSilentAt(marker!)
      const starting = yield* Effect.forkChild(use(through.url, () => Effect.void))
      yield* waitFor("it is silent", Effect.sync(through.isSilent), (isSilent) => isSilent)
      yield* Fiber.interrupt(starting).pipe(
        Effect.timeoutOrElse({ duration: "15 seconds", orElse: () => Effect.die(new Error("it does not end")) }),
      )
    }),
  )
})

describe("a connection that is lost during a commit", () => {
  for (const cut of ["before", "after"] as const) {
    it.live(`${cut} the server had it: a mint is not to be repeated, for its rows may stand`, () =>
      Effect.gen(function* () {
        const through = yield* proxy(yield* postgres.database)
        yield* use(through.url, (storage) =>
          Effect.gen(function* () {
            const owner = yield* started(storage)
            through.cutNextCommit(cut, "m-1-0")
            const error = yield* Effect.flip(storage.mint(owner, batch([match(at(1))])))
            assert.isTrue(through.hasCut())
            assert.deepInclude(error, { _tag: "StorageError", operation: "mint", retryable: false })
            assert.include(error.message, "not known whether")
            const rows = yield* waitFor("the row is there, or not", owed(storage), (found) => {
              return found.length === (cut === "before" ? 0 : 1)
            })
            const again = yield* storage.mint(owner, batch([match(at(1))]))
            assert.lengthOf(again.rows, 1 - rows.length)
          }),
        )
      }).pipe(Effect.scoped),
    )

    it.live(`${cut} the server had it: an outcome is repeated, and written once`, () =>
      Effect.gen(function* () {
        const through = yield* proxy(yield* postgres.database)
        yield* use(through.url, (storage) =>
          Effect.gen(function* () {
            const owner = yield* started(storage)
            const { rows } = yield* storage.mint(owner, batch([match(at(1))]))
            through.cutNextCommit(cut, "a reason of its own")
            const settle = storage.settle(owner, {
              outcomes: [{ seq: rows[0]!.seq, state: "dead", attempts: 1, reason: "a reason of its own" }],
              offered: [],
            })
            assert.deepInclude(yield* Effect.flip(settle), { operation: "settle", retryable: true })
            yield* settle
            const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
            assert.lengthOf(letters, 1)
          }),
        )
      }).pipe(Effect.scoped),
    )
  }
})
