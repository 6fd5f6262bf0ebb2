import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { layerPostgres } from "../../../../core/storage/postgres.ts"
import { NotOwner } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { waitFor } from "../../../support/process.ts"
import { at, batch, hit, lease, match, monitor, sink } from "../builders.ts"
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

/** How many transactions of a database were given up because they waited for one another. */
const deadlocks = (url: string) =>
  Effect.map(
    execute(
      url,
      "select pg_stat_force_next_flush(), deadlocks n from pg_stat_database where datname = current_database()",
    ),
    ([row]) => Number(row!["n"]),
  )

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
        assert.deepStrictEqual(yield* one.debts({ network: "net" }), { owed: 0, dead: 0, actions: 0 })
        yield* Fiber.join(writing)
        yield* two.change({ deleteNetworks: ["net"] })
        assert.isNull(yield* one.pipeline("net"))
        assert.lengthOf(yield* one.feedPage({ network: "net", kinds: ["match"], after: 0, limit: 10 }), 0)
        assert.lengthOf(yield* one.feedPage({ network: "other", kinds: ["match"], after: 0, limit: 10 }), 5)
      }),
    ),
  )

  it.live("counts dead letters of networks that write at the same time, while a sink's are let go", () =>
    useTwo((one, two, url) =>
      Effect.gen(function* () {
        const dying = Effect.fnUntraced(function* (storage: Service, network: string) {
          const owner = yield* started(storage, network)
          for (let n = 1; n <= 20; n++) {
            const { rows } = yield* storage.mint(owner, batch([match(at(n), { sinks: ["log", "other"] })]))
            yield* storage.settle(owner, {
              outcomes: rows.map(({ seq }) => ({ seq, state: "dead", attempts: 1, reason: "transient" })),
              offered: [],
            })
            yield* storage.replayed(owner, { seq: rows[1]!.seq, state: "delivered", attempts: 2, reason: null })
          }
        })
        const networks = Array.from({ length: 6 }, (_, i) => `n${i}`)
        const dead = yield* Effect.forkChild(
          Effect.forEach(networks, (network, i) => dying(i % 2 === 0 ? one : two, network), {
            concurrency: "unbounded",
          }),
        )
        for (let n = 1; n <= 10; n++) {
          yield* two.change({
            discard: [{ sink: "log" }, { monitor: "transfers" }],
            putMonitors: [monitor("transfers")],
          })
        }
        yield* Fiber.join(dead)
        const [counted] = yield* execute(url, "select coalesce(sum(letters), 0) n from dead_letter_counts")
        const [stored] = yield* execute(url, "select count(*) n from deliveries where died is not null")
        assert.strictEqual(counted!["n"], stored!["n"])
        assert.strictEqual(yield* deadlocks(url), 0)
      }),
    ),
  )

  it.live("lets very many deliveries die at once, and lets go of them", () =>
    Effect.flatMap(postgres.database, (url) =>
      use(url, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          for (let n = 0; n < 4; n++) {
            const failure = "permanent: predicate: no"
            yield* storage.mint(
              owner,
              batch(Array.from({ length: 5000 }, (_, i) => match(at(n * 5000 + i + 1), { failure }))),
            )
          }
          assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 20_000)
          yield* storage.change({ discard: [{ monitor: "transfers" }] })
          assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 0)
        }),
      ),
    ),
  )

  for (const { what, networkOf } of [
    { what: "deletes", networkOf: () => "net" },
    { what: "moves and deletes", networkOf: (n: number) => (n % 2 === 0 ? "net" : "other") },
  ]) {
    it.live(`${what} a monitor while batches bring hits that its gate holds`, () =>
      useTwo((one, two, url) =>
        Effect.gen(function* () {
          const gate = { type: "threshold", count: 3, windowMs: 1_000_000, by: null } as const
          const changed = yield* Deferred.make<void>()
          const minting = yield* Effect.forkChild(
            Effect.forEach(
              new Set([networkOf(0), networkOf(1)]),
              Effect.fnUntraced(function* (network) {
                const owner = yield* started(one, network)
                for (let n = 1; !(yield* Deferred.isDone(changed)); n++) {
                  const hits = [1, 2].map((i) => hit(at(n, i), gate, { monitor: "m0", id: `${network} ${n} ${i}` }))
                  const effective = [{ monitor: "m0", matchRevision: "r1", from: at(n) }]
                  yield* one.mint(owner, batch(hits, { effective }))
                }
              }),
              { concurrency: "unbounded" },
            ),
          )
          for (let n = 1; n <= 20; n++) {
            for (const network of [networkOf(n), networkOf(n + 1)]) {
              yield* two.change({ putMonitors: [monitor("m0", { network })] })
            }
            yield* two.change({ deleteMonitors: ["m0"] })
          }
          yield* Deferred.succeed(changed, undefined)
          yield* Fiber.join(minting)
          const emissions = yield* execute(url, "select count(*)::integer n from matches group by network, emission")
          for (const { n } of emissions) assert.strictEqual(n, 3)
          yield* two.change({ deleteMonitors: ["m0"] })
          assert.lengthOf(yield* execute(url, "select 1 from gate_hits"), 0)
          if (networkOf(1) === networkOf(2)) assert.strictEqual(yield* deadlocks(url), 0)
        }),
      ),
    )
  }

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
