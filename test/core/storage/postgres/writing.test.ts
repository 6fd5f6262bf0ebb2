import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { NotOwner } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { waitFor } from "../../../support/process.ts"
import { at, batch, lease, match, monitor, sink } from "../builders.ts"
import { postgresServer } from "./server.ts"

const postgres = postgresServer()

type Service = Storage["Service"]

const use = <A, E>(url: string, body: (storage: Service) => Effect.Effect<A, E>) =>
  Storage.use(body).pipe(Effect.provide(layerPostgres({ url }), { local: true }))

/** Two processes' layers on one new database. */
const useTwo = <A, E>(body: (one: Service, two: Service, url: string) => Effect.Effect<A, E>) =>
  Effect.flatMap(postgres.database, (url) => use(url, (one) => use(url, (two) => body(one, two, url))))

const started = Effect.fnUntraced(function* (storage: Service, network = "net") {
  const owner = yield* storage.claim(network, lease())
  yield* storage.begin(owner, at(0))
  return owner
})

const owed = (storage: Service, network = "net") => storage.owed(network, "log", { afterSeq: 0, limit: 10_000 })

const execute = (url: string, statement: string) =>
  Effect.promise(() => postgres.server.execute(new URL(url).pathname.slice(1), statement))

describe("writing", () => {
  it.live("commits writes that wait together in fewer transactions than there are writes", () =>
    Effect.flatMap(postgres.database, (url) =>
      use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          const transactions = Effect.map(execute(url, "select count(distinct xmin::text) n from matches"), ([row]) =>
            Number(row!["n"]),
          )
          const mint = (n: number) => storage.mint(owner, batch([match(at(n))]))
          for (let n = 1; n <= 5; n++) yield* mint(n)
          assert.strictEqual(yield* transactions, 5)
          const rest = Array.from({ length: 100 }, (_, i) => 6 + i)
          yield* Effect.forEach(rest, mint, { concurrency: "unbounded" })
          // How many fit in a transaction is a matter of time.
          assert.isBelow(yield* transactions, 100)
          assert.lengthOf(yield* owed(storage), 105)
        }),
      ),
    ),
  )

  it.live("lets no one read past a write whose caller was interrupted while it was made", () =>
    Effect.flatMap(postgres.database, (url) =>
      use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          // Each round the interruption comes a little later, so that it meets every step of the write.
          for (let round = 1; round <= 60; round++) {
            const mint = yield* Effect.forkChild(storage.mint(owner, batch([match(at(round))])), {
              startImmediately: true,
            })
            yield* Effect.sleep(`${round * 50} micros`)
            yield* Fiber.interrupt(mint)
            const { minted } = (yield* storage.pipeline("net"))!
            const seen = (yield* owed(storage)).length
            yield* storage.checkpoint(owner, at(0))
            assert.deepStrictEqual((yield* storage.pipeline("net"))!.minted, minted)
            assert.strictEqual((yield* owed(storage)).length, seen)
          }
        }),
      ),
    ),
  )

  it.live("refuses the writes of an owner when another process claimed the network, whichever comes first", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        const first = yield* started(one)
        const minted: Array<string> = []
        const write = (n: number) =>
          Effect.map(one.mint(first, batch([match(at(n))])), ({ rows }) =>
            minted.push(...rows.map(({ matchId }) => matchId)),
          )
        const writing = yield* Effect.forkChild(
          Effect.flip(
            Effect.forEach(
              Array.from({ length: 1000 }, (_, i) => i + 1),
              write,
              { concurrency: 4 },
            ),
          ),
        )
        yield* waitFor(
          "some are minted",
          Effect.sync(() => minted.length),
          (count) => count > 20,
        )
        const second = yield* two.claim("net", lease("other", { isGone: () => true }))
        const before = yield* owed(two)
        assert.instanceOf(yield* Fiber.join(writing), NotOwner)
        yield* two.mint(second, batch([match(at(2000))]))
        const after = yield* owed(two)
        assert.lengthOf(after, before.length + 1)
        assert.strictEqual(after.at(-1)!.matchId, "m-2000-0")
        assert.includeMembers(
          after.map(({ matchId }) => matchId),
          minted,
        )
      }),
    ),
  )

  it.live("gives rows numbers in the order of their minting, over owners in turn", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        let block = 0
        for (const storage of [one, two, one, two, one]) {
          const owner = yield* storage.claim("net", lease(`holder ${block}`, { isGone: () => true }))
          yield* storage.begin(owner, at(0))
          for (const n of [1, 2]) {
            yield* storage.mint(owner, batch([match(at(++block), { id: `m${n}${block}` }), match(at(++block))]))
          }
        }
        const rows = yield* owed(one)
        assert.deepStrictEqual(
          rows.map(({ cursor }) => cursor.primary),
          Array.from({ length: block }, (_, i) => i + 1),
        )
      }),
    ),
  )

  it.live("waits for another process's transaction on one network, and meanwhile writes the others", () =>
    Effect.flatMap(postgres.database, (url) =>
      use(url, (storage) =>
        Effect.gen(function* () {
          const [blocked, free] = [yield* started(storage, "blocked"), yield* started(storage, "free")]
          const held = yield* Effect.forkChild(
            execute(
              url,
              "begin; select 1 from pipelines where network = 'blocked' for update; select pg_sleep(1); commit",
            ),
          )
          yield* waitFor(
            "the row is locked",
            execute(url, "select 1 from pg_stat_activity where query like '%pg_sleep(1)%' and wait_event = 'PgSleep'"),
            (rows) => rows.length > 0,
          )
          const waiting = yield* Effect.forkChild(storage.mint(blocked, batch([match(at(1))])))
          yield* storage.mint(free, batch([match(at(1))]))
          assert.lengthOf(yield* owed(storage, "free"), 1)
          assert.lengthOf(yield* owed(storage, "blocked"), 0)
          yield* Fiber.join(held)
          yield* Fiber.join(waiting)
          assert.lengthOf(yield* owed(storage, "blocked"), 1)
        }),
      ),
    ),
  )

  it.live("loses no monitor's beginning between a batch and a change that meet", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        const owner = yield* started(one)
        yield* two.change({ putMonitors: [monitor("m0")] })
        for (let n = 1; n <= 20; n++) {
          yield* two.change({ putMonitors: [monitor("m0", {}, { matchRevision: `r${n}` })] })
          const effective = [{ monitor: "m0", matchRevision: `r${n}`, from: at(n) }]
          yield* Effect.all(
            [
              one.mint(owner, batch([], { upTo: at(n), effective })),
              two.change({ putMonitors: [monitor("m0", { sinks: [`s${n}`] }, { matchRevision: `r${n}` })] }),
            ],
            { concurrency: "unbounded" },
          )
          assert.deepStrictEqual((yield* one.resources).monitors[0]!.effectiveFrom, at(n))
        }
      }),
    ),
  )

  it.live("deletes networks with many rows, and lets go of what a sink is owed, while others write", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        const owner = yield* started(one)
        const other = yield* started(one, "other")
        for (let n = 0; n < 5; n++) {
          const matches = Array.from({ length: 5000 }, (_, i) => match(at(n * 5000 + i + 1)))
          yield* one.mint(owner, batch(matches))
        }
        const writing = yield* Effect.forkChild(
          Effect.forEach([1, 2, 3, 4, 5], (n) => one.mint(other, batch([match(at(n))]))),
        )
        yield* two.change({ discard: [{ sink: "log" }] })
        assert.deepStrictEqual(yield* one.debts({ network: "net" }), { owed: 0, dead: 0 })
        yield* Fiber.join(writing)
        yield* two.change({ deleteNetworks: ["net"] })
        assert.isNull(yield* one.pipeline("net"))
        assert.lengthOf(yield* one.feedPage({ network: "net", kinds: ["match"], after: 0, limit: 10 }), 0)
        assert.lengthOf(yield* one.feedPage({ network: "other", kinds: ["match"], after: 0, limit: 10 }), 5)
      }),
    ),
  )

  it.live("stores what a receiver said, whatever characters it holds", () =>
    Effect.flatMap(postgres.database, (url) =>
      use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          const { rows } = yield* storage.mint(owner, batch([match(at(1))]))
          const reason = `permanent: 400: it's "a\\b"\0\n{€,𝄞,\uD800}`
          yield* storage.settle(owner, {
            outcomes: [{ seq: rows[0]!.seq, state: "dead", attempts: 1, reason }],
            offered: [],
          })
          const [letter] = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 1 })
          assert.strictEqual(letter!.reason, `permanent: 400: it's "a\\b"\uFFFD\n{€,𝄞,\uFFFD}`)
        }),
      ),
    ),
  )

  it.live(
    "drops a write whose caller was interrupted while it waited, and writes what is queued before it closes",
    () =>
      Effect.gen(function* () {
        const url = yield* postgres.database
        yield* use(url, (storage) =>
          Effect.gen(function* () {
            const owner = yield* started(storage)
            const mint = (n: number) => storage.mint(owner, batch([match(at(n))]))
            yield* Fiber.interrupt(yield* Effect.forkChild(mint(1), { startImmediately: true }))
            for (let n = 2; n <= 20; n++) yield* Effect.forkDetach(mint(n), { startImmediately: true })
          }),
        )
        assert.lengthOf(yield* use(url, owed), 19)
      }),
  )

  it.live("tells every process of a feed that grew", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        const owner = yield* started(one)
        const told = yield* Deferred.make<{ readonly network: string; readonly position: number }>()
        yield* Effect.forkChild(two.feedGrowth.pipe(Stream.runForEach((grown) => Deferred.succeed(told, grown))), {
          startImmediately: true,
        })
        let n = 0
        const mint = Effect.suspend(() => one.mint(owner, batch([match(at(++n))])))
        yield* waitFor("it is told", Effect.andThen(mint, Deferred.isDone(told)), (done) => done)
        const { network, position } = yield* Deferred.await(told)
        assert.strictEqual(network, "net")
        assert.isAtMost(position, n)
        assert.isAtLeast(position, 1)
      }),
    ),
  )

  it.live("stores one of two changes that rest on the same version, of two processes", () =>
    useTwo((one, two) =>
      Effect.gen(function* () {
        const basedOn = yield* one.resourcesVersion
        const changes = yield* Effect.all(
          [one, two].map((storage, i) => Effect.option(storage.change({ basedOn, putSinks: [sink(`s${i}`)] }))),
          { concurrency: "unbounded" },
        )
        assert.lengthOf(
          changes.filter(({ _tag }) => _tag === "Some"),
          1,
        )
        assert.lengthOf((yield* one.resources).sinks, 1)
        assert.strictEqual(yield* two.resourcesVersion, basedOn + 1)
      }),
    ),
  )
})
