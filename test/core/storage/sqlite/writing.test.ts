import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { createInterface } from "node:readline"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { NotOwner, StaleResources, StorageError } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import type { ResourceChanges } from "../../../../core/storage/stored.ts"
import { at, batch, hit, lease, match, monitor, network, sink } from "../builders.ts"
import { commitsInLog, databaseFiles } from "./files.ts"

const file = databaseFiles()

const use = <A, E>(path: string, body: (storage: Storage["Service"]) => Effect.Effect<A, E>) =>
  Storage.use(body).pipe(Effect.provide(layerSqlite({ path }), { local: true }))

const started = Effect.fnUntraced(function* (storage: Storage["Service"]) {
  const owner = yield* storage.claim("net", lease())
  yield* storage.begin(owner, at(0))
  return owner
})

/** Takes the write lock of a database over another connection, until `COMMIT` or the end of the scope. */
const lock = Effect.fnUntraced(function* (path: string) {
  const { native } = yield* open(path)
  native.exec("BEGIN IMMEDIATE")
  return native
})

describe("the group writer", () => {
  it.live("commits writes that wait together in far fewer transactions than there are writes", () =>
    use(file("groups.db"), (storage) =>
      Effect.gen(function* () {
        const path = file("groups.db")
        const owner = yield* started(storage)
        const mint = (n: number) => storage.mint(owner, batch([match(at(n))]))
        const before = commitsInLog(path)
        for (let n = 1; n <= 5; n++) yield* mint(n)
        const alone = commitsInLog(path)
        assert.strictEqual(alone - before, 5)
        yield* Effect.forEach(
          Array.from({ length: 100 }, (_, i) => 6 + i),
          mint,
          { concurrency: "unbounded" },
        )
        assert.isBelow(commitsInLog(path) - alone, 50)
        assert.lengthOf(yield* storage.owed("net", "log", { afterSeq: 0, limit: 1000 }), 105)
      }),
    ),
  )

  it.live("waits for another connection's lock without stopping the event loop", () =>
    use(file("locked.db"), (storage) =>
      Effect.gen(function* () {
        const owner = yield* started(storage)
        const held = yield* lock(file("locked.db"))
        // The lock is given back from this very event loop: it would never be if the loop stood still.
        const fibers = yield* Effect.all([
          Effect.forkChild(storage.mint(owner, batch([match(at(1))]))),
          Effect.forkChild(storage.change({ putSinks: [sink("log")] })),
        ])
        let turns = 0
        yield* Effect.sync(() => turns++).pipe(
          Effect.delay("10 millis"),
          Effect.repeat(Schedule.upTo(Schedule.forever, { duration: "1 second" })),
        )
        assert.isAbove(turns, 10)
        assert.deepStrictEqual(yield* storage.owed("net", "log", { afterSeq: 0, limit: 10 }), [])
        held.exec("COMMIT")
        yield* Fiber.joinAll(fibers)
        assert.lengthOf(yield* storage.owed("net", "log", { afterSeq: 0, limit: 10 }), 1)
        assert.lengthOf((yield* storage.resources).sinks, 1)
      }).pipe(Effect.scoped),
    ),
  )

  it.live("lets the event loop go on while what a gate recorded is dropped", () =>
    use(file("gate.db"), (storage) =>
      Effect.gen(function* () {
        const gate = { type: "threshold", count: 10_000, windowMs: 100_000, by: null } as const
        const hits = Array.from({ length: 5000 }, (_, i) => hit(at(i + 1), gate, { time: i }))
        yield* storage.change({ putNetworks: [network("net")], putMonitors: [monitor("transfers")] })
        const owner = yield* started(storage)
        const turnsOf = Effect.fnUntraced(function* (changes: ResourceChanges) {
          yield* storage.mint(owner, batch(hits))
          let turns = 0
          let timer = setImmediate(function count() {
            turns++
            timer = setImmediate(count)
          })
          yield* storage.change(changes).pipe(Effect.ensuring(Effect.sync(() => clearImmediate(timer))))
          return turns
        })
        const edited = monitor("transfers", {}, { matchRevision: "r2" })
        assert.isAtLeast(yield* turnsOf({ putMonitors: [edited] }), 5)
        yield* storage.change({ putMonitors: [monitor("transfers")] })
        assert.isAtLeast(yield* turnsOf({ deleteMonitors: ["transfers"] }), 5)
        yield* storage.change({ putMonitors: [monitor("transfers")] })
        assert.isAtLeast(yield* turnsOf({ deleteNetworks: ["net"] }), 5)
      }),
    ),
  )

  it.effect("gives up on a lock that is held for more than five seconds, and a later write goes through", () =>
    use(file("held.db"), (storage) =>
      Effect.gen(function* () {
        const owner = yield* started(storage)
        const held = yield* lock(file("held.db"))
        const writes = yield* Effect.forkChild(
          Effect.all(
            [
              Effect.flip(storage.mint(owner, batch([match(at(1))]))),
              Effect.flip(storage.checkpoint(owner, at(0))),
              Effect.flip(storage.change({ putSinks: [sink("log")] })),
            ],
            { concurrency: "unbounded" },
          ),
        )
        yield* TestClock.adjust("20 seconds").pipe(Effect.repeat({ times: 5 }))
        for (const error of yield* Fiber.join(writes)) {
          assert.instanceOf(error, StorageError)
          assert.deepInclude(error, { retryable: true })
          assert.include(error.message, "locked")
        }
        held.exec("COMMIT")
        yield* storage.mint(owner, batch([match(at(1))]))
      }).pipe(Effect.scoped),
    ),
  )

  it.live("drops a write whose caller was interrupted while it waited", () =>
    use(file("interrupted.db"), (storage) =>
      Effect.gen(function* () {
        const owner = yield* started(storage)
        const held = yield* lock(file("interrupted.db"))
        const fiber = yield* Effect.forkChild(storage.mint(owner, batch([match(at(1))])), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
        held.exec("COMMIT")
        yield* storage.mint(owner, batch([match(at(2))]))
        const owed = yield* storage.owed("net", "log", { afterSeq: 0, limit: 10 })
        assert.deepStrictEqual(
          owed.map(({ matchId }) => matchId),
          ["m-2-0"],
        )
      }).pipe(Effect.scoped),
    ),
  )

  it.live("refuses the writes of an owner when another connection claimed the network", () =>
    use(file("two.db"), (one) =>
      use(file("two.db"), (two) =>
        Effect.gen(function* () {
          const first = yield* started(one)
          const second = yield* two.claim("net", lease())
          const error = yield* Effect.flip(one.mint(first, batch([match(at(1))])))
          assert.instanceOf(error, NotOwner)
          yield* two.mint(second, batch([match(at(1))]))
          assert.lengthOf(yield* one.owed("net", "log", { afterSeq: 0, limit: 10 }), 1)
        }),
      ),
    ),
  )

  it.live("keeps a network for its holder against other connections, until it is given back", () =>
    use(file("held-network.db"), (one) =>
      use(file("held-network.db"), (two) =>
        Effect.gen(function* () {
          const first = yield* started(one)
          const refused = yield* Effect.flip(two.claim("net", lease("two")))
          assert.deepInclude(refused, { _tag: "Held", holder: "this" })
          yield* one.release(first)
          const second = yield* two.claim("net", lease("two"))
          assert.strictEqual(second.epoch, first.epoch + 1)
        }),
      ),
    ),
  )

  it.live("stores one of the changes that connections rest on the same version", () =>
    use(file("versions.db"), (one) =>
      use(file("versions.db"), (two) =>
        Effect.gen(function* () {
          const basedOn = yield* one.resourcesVersion
          const changes = yield* Effect.all(
            [one, two, one, two].map((storage, i) =>
              Effect.result(storage.change({ basedOn, putSinks: [sink(`s${i}`)] })),
            ),
            { concurrency: "unbounded" },
          )
          assert.lengthOf(changes.filter(Result.isSuccess), 1)
          for (const refused of changes.filter(Result.isFailure)) assert.instanceOf(refused.failure, StaleResources)
          assert.strictEqual(yield* one.resourcesVersion, basedOn + 1)
          assert.strictEqual(yield* two.resourcesVersion, basedOn + 1)
          assert.lengthOf((yield* two.resources).sinks, 1)
        }),
      ),
    ),
  )

  it.live("writes what is queued before it closes", () =>
    Effect.gen(function* () {
      const path = file("closing.db")
      yield* use(path, (storage) =>
        Effect.gen(function* () {
          const owner = yield* started(storage)
          for (let n = 1; n <= 20; n++) {
            yield* Effect.forkDetach(storage.mint(owner, batch([match(at(n))])), { startImmediately: true })
          }
        }),
      )
      const owed = yield* use(path, (storage) => storage.owed("net", "log", { afterSeq: 0, limit: 100 }))
      assert.lengthOf(owed, 20)
    }),
  )

  it.live("leaves whole batches, and every one that was acknowledged, when its process is killed", () =>
    Effect.gen(function* () {
      const path = file("killed.db")
      const acknowledged = yield* Effect.promise(async () => {
        const child = spawn(process.execPath, [fileURLToPath(new URL("endless-writer.ts", import.meta.url)), path], {
          stdio: ["ignore", "pipe", "inherit"],
        })
        const exited = once(child, "exit")
        const numbers: Array<number> = []
        for await (const line of createInterface({ input: child.stdout })) {
          numbers.push(Number(line))
          if (numbers.length === 40) child.kill("SIGKILL")
        }
        const [, signal] = await exited
        assert.strictEqual(signal, "SIGKILL")
        return numbers
      })

      yield* use(path, (storage) =>
        Effect.gen(function* () {
          const rows = yield* storage.owed("net", "log", { afterSeq: 0, limit: 1_000_000 })
          const others = yield* storage.owed("net", "alerts", { afterSeq: 0, limit: 1_000_000 })
          const items = yield* storage.feedPage({ network: "net", kinds: ["match"], after: 0, limit: 1_000_000 })
          const sizes = new Map<number, number>()
          for (const { cursor } of rows) sizes.set(cursor.primary, (sizes.get(cursor.primary) ?? 0) + 1)
          for (const [primary, size] of sizes) assert.strictEqual(size, 20, `batch ${primary}`)
          for (const primary of acknowledged) assert.isTrue(sizes.has(primary), `batch ${primary}`)
          assert.lengthOf(others, rows.length)
          assert.deepStrictEqual(
            items.map(({ position }) => position),
            Array.from({ length: rows.length }, (_, i) => i + 1),
          )
          const pipeline = yield* storage.pipeline("net")
          assert.strictEqual(pipeline!.feedPosition, rows.length)
          assert.strictEqual(pipeline!.minted!.primary, Math.max(...sizes.keys()))
        }),
      )
    }),
  )
})
