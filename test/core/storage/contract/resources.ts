import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Held, NotOwner, StaleResources, StorageError } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match, monitor, network, sink } from "../builders.ts"
import { all, everything, started, type Test } from "./support.ts"

/** The part of the contract about resources. */
export const resources = (test: Test): void => {
  test("a change is stored whole and read back as it was put", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const changes = {
        putNetworks: [network("net", { chain_id: 1, urls: ["http://127.0.0.1"] })],
        putMonitors: [
          monitor(
            "large",
            { predicate: "args.value > 1", gate: { type: "threshold", count: 3, windowMs: 1000, by: null } },
            { effectiveFrom: at(3, 4) },
          ),
        ],
        putSinks: [sink("log")],
        seeds: [{ kind: "sink", id: "log", path: "sinks/log.json", hash: "h1" }],
      } as const
      yield* storage.change(changes)
      assert.deepStrictEqual(yield* storage.resources, {
        networks: changes.putNetworks,
        monitors: changes.putMonitors,
        sinks: changes.putSinks,
        version: yield* storage.resourcesVersion,
      })
      const replaced = { ...network("net", { chain_id: 2 }), revision: "net-2" }
      yield* storage.change({ putNetworks: [replaced], seeds: [{ ...changes.seeds[0], hash: "h2" }] })
      assert.deepStrictEqual((yield* storage.resources).networks, [replaced])
      assert.deepStrictEqual(yield* storage.seeds, [{ ...changes.seeds[0], hash: "h2" }])
    }))

  test("a paused sink stays so when it is put, until it is let go on", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      yield* storage.change({ putSinks: [sink("log"), sink("alerts")] })
      yield* storage.change({ pauseSinks: [{ id: "log", paused: "by an operator" }] })
      yield* storage.change({ putSinks: [sink("log")] })
      const pausedSinks = Effect.map(storage.resources, ({ sinks }) => sinks.map(({ paused }) => paused))
      assert.deepStrictEqual(yield* pausedSinks, [null, "by an operator"])
      yield* storage.change({ pauseSinks: [{ id: "log", paused: null }] })
      assert.deepStrictEqual(yield* pausedSinks, [null, null])
    }))

  test("a change that fails half way changes nothing", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const version = yield* storage.change({ putSinks: [sink("log")] })
      const broken = { ...monitor("broken"), matchRevision: null as unknown as string }
      const error = yield* Effect.flip(
        storage.change({ deleteSinks: ["log"], putNetworks: [network("net")], putMonitors: [broken] }),
      )
      assert.instanceOf(error, StorageError)
      assert.deepStrictEqual(yield* storage.resources, { networks: [], monitors: [], sinks: [sink("log")], version })
    }))

  test("every change answers a version above all before it, which is what is read", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const versions = [yield* storage.resourcesVersion]
      for (const changes of [
        { putSinks: [sink("log")] },
        { putNetworks: [network("net")] },
        { deleteSinks: ["log"] },
      ]) {
        versions.push(yield* storage.change(changes))
        assert.strictEqual(yield* storage.resourcesVersion, versions.at(-1))
        assert.strictEqual((yield* storage.resources).version, versions.at(-1))
      }
      assert.deepStrictEqual(
        versions,
        [...new Set(versions)].toSorted((a, b) => a - b),
      )
    }))

  test("a change that rests on what is not the present version changes nothing", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const basedOn = yield* storage.change({ putSinks: [sink("log")] })
      const version = yield* storage.change({ basedOn, putSinks: [sink("alerts")] })
      for (const stale of [basedOn, version + 1]) {
        const error = yield* Effect.flip(storage.change({ basedOn: stale, deleteSinks: ["log"] }))
        assert.instanceOf(error, StaleResources)
      }
      assert.strictEqual(yield* storage.resourcesVersion, version)
      assert.deepStrictEqual((yield* storage.resources).sinks, [sink("alerts"), sink("log")])
    }))

  test("of changes that rest on the same version one is stored", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const basedOn = yield* storage.resourcesVersion
      const exits = yield* Effect.all(
        ["a", "b", "c"].map((id) => Effect.exit(storage.change({ basedOn, putSinks: [sink(id)] }))),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(exits.filter(Exit.isSuccess), 1)
      assert.lengthOf((yield* storage.resources).sinks, 1)
    }))

  test("a deleted resource keeps its seed record", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const seed = { kind: "sink", id: "log", path: "sinks/log.json", hash: "h1" } as const
      yield* storage.change({ putSinks: [sink("log")], seeds: [seed] })
      yield* storage.change({ deleteSinks: ["log"], discard: [{ sink: "log" }] })
      assert.deepStrictEqual((yield* storage.resources).sinks, [])
      assert.deepStrictEqual(yield* storage.seeds, [seed])
    }))

  test("a deleted network leaves no row, and a new one of its id goes on with the positions", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      yield* storage.change({ putNetworks: [network("net"), network("other")], putMonitors: [monitor("transfers")] })
      const anchors = [{ primary: 1, hash: "one" }]
      yield* storage.mint(owner, batch([match(at(1)), match(at(2))], { anchors }))
      yield* storage.mint(other.owner, batch([match(at(1))]))
      yield* storage.pause(owner, true)
      yield* storage.invalidate(owner, { from: at(1), cause: "reorg" })
      yield* storage.change({
        deleteNetworks: ["net"],
        deleteMonitors: ["transfers"],
        discard: [{ monitor: "transfers" }],
      })

      assert.isNull(yield* storage.pipeline("net"))
      assert.isNull(yield* storage.invalidation("net"))
      assert.deepStrictEqual(yield* storage.owedSinks("net"), [])
      assert.deepStrictEqual(yield* storage.anchors("net", 9, 9), [])
      assert.deepStrictEqual(yield* storage.feedPage({ network: "net", ...everything }), [])
      assert.deepStrictEqual(
        (yield* storage.feedStates()).map((state) => state.network),
        ["other"],
      )
      const stale = yield* Effect.flip(storage.mint(owner, batch([match(at(3))])))
      assert.instanceOf(stale, NotOwner)

      // A process that has not heard of the deletion must not bring it back.
      assert.instanceOf(yield* Effect.flip(storage.claim("net", lease("another"))), Held)
      assert.isNull(yield* storage.pipeline("net"))
      yield* storage.change({ putNetworks: [network("net")] })
      const next = yield* storage.claim("net", lease("another"))
      assert.deepInclude(yield* storage.pipeline("net"), {
        minted: null,
        checkpoint: null,
        feedPosition: 2,
        start: null,
        paused: false,
      })
      yield* storage.begin(next, at(0))
      const minted = yield* storage.mint(next, batch([match(at(1))]))
      assert.deepInclude(minted, { shown: 1, feedPosition: 3 })
      assert.lengthOf(yield* storage.owed("other", "log", all), 0)
    }))

  test("a deleted sink or monitor owes nothing any more and has no dead letters", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const sinks = ["log", "alerts"]
      const { rows } = yield* storage.mint(
        owner,
        batch([match(at(1), { sinks }), match(at(2), { sinks }), match(at(3), { monitor: "mints", sinks })]),
      )
      yield* storage.settle(owner, {
        outcomes: [{ seq: rows[0]!.seq, state: "dead", attempts: 1, reason: "gone" }],
        offered: [rows[2]!.seq],
      })
      yield* storage.change({ deleteSinks: ["log"], discard: [{ sink: "log" }] })
      assert.deepStrictEqual(yield* storage.debts({ sink: "log" }), { owed: 0, dead: 0, actions: 0 })
      assert.deepStrictEqual(yield* storage.owedSinks("net"), ["alerts"])
      yield* storage.change({ deleteMonitors: ["mints"], discard: [{ monitor: "mints" }] })
      assert.deepStrictEqual(yield* storage.debts({ network: "net" }), { owed: 2, dead: 0, actions: 0 })
      yield* storage.settle(owner, {
        outcomes: [{ seq: rows[2]!.seq, state: "dead", attempts: 2, reason: "too late" }],
        offered: [],
      })
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 0)
    }))
}
