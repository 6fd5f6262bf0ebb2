import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { SourceRecord } from "../../../../core/plugin/source.ts"
import { type Owner, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, late, match, network } from "../builders.ts"
import { claim, started, takeBack, type Test } from "./support.ts"

const record = (value: string, primary: number, secondary = 0, key = "a"): SourceRecord => ({
  key,
  value,
  cursor: at(primary, secondary),
})

/** The part of the contract about what sources record. */
export const records = (test: Test): void => {
  const kept = (id = "net") => Effect.flatMap(Storage, (storage) => storage.records(id, { after: null, limit: 1000 }))
  const keep = (owner: Owner, list: ReadonlyArray<SourceRecord>, upTo = at(50)) =>
    Effect.flatMap(Storage, (storage) => storage.mint(owner, batch([], { upTo, records: list })))

  test("what a source records with a batch is given back in the order of its keys, a page at a time", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const list = [record("y", 2), record("x", 3, 7), record("x", 1, 0, "A"), record("'é\\", -1, 2_147_483_647, "b")]
      yield* storage.mint(owner, batch([match(at(9))], { records: list }))
      yield* keep(other.owner, [record("z", 1)])
      const sorted = [list[2]!, list[1]!, list[0]!, list[3]!]
      assert.deepStrictEqual(yield* kept(), sorted)
      assert.deepStrictEqual(yield* storage.records("net", { after: null, limit: 2 }), sorted.slice(0, 2))
      assert.deepStrictEqual(yield* storage.records("net", { after: sorted[1]!, limit: 9 }), sorted.slice(2))
      assert.deepStrictEqual(yield* storage.records("net", { after: sorted[3]!, limit: 9 }), [])
      assert.deepStrictEqual(yield* kept("other"), [record("z", 1)])
    }))

  test("a value that is recorded again moves, and one that is forgotten is gone unless it comes with it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* keep(owner, [record("x", 1), record("y", 1), record("z", 1), record("x", 1, 0, "b")])
      yield* keep(owner, [record("x", 4), record("x", 5)])
      const forget = [{ key: "a", value: "y" }, record("z", 1), { key: "c", value: "x" }]
      yield* storage.mint(owner, batch([], { upTo: at(60), forget, records: [record("z", 6)] }))
      assert.deepStrictEqual(yield* kept(), [record("x", 5), record("z", 6), record("x", 1, 0, "b")])
    }))

  test("what comes with a late find is kept if its hash is the recorded one", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([], { upTo: at(9), anchors: [{ primary: 5, hash: "five" }] }))
      const proven = [record("x", 4), record("y", 5)]
      yield* storage.mintLate(
        owner,
        late([], {
          anchors: [{ primary: 4, hash: "four" }],
          records: [
            { ...proven[0]!, hash: "four" },
            { ...proven[1]!, hash: "five" },
            { ...record("z", 5), hash: "other" },
            { ...record("z", 6), hash: "six" },
          ],
        }),
      )
      assert.deepStrictEqual(yield* kept(), proven)
    }))

  test("what lies behind a point that is taken back is forgotten", () =>
    Effect.gen(function* () {
      const { owner } = yield* started()
      const other = yield* started("other")
      const list = [record("early", 3), record("at", 5, 7), record("behind", 5, 8), record("later", 6)]
      yield* keep(owner, list)
      yield* keep(other.owner, list)
      yield* takeBack(owner, at(5, 7))
      assert.deepStrictEqual(yield* kept(), [list[1]!, list[0]!])
      assert.lengthOf(yield* kept("other"), 4)
    }))

  test("thousands come with one batch", () =>
    Effect.gen(function* () {
      const { owner } = yield* started()
      yield* keep(
        owner,
        Array.from({ length: 3000 }, (_, i) => record(`${i}`.padStart(4, "0"), i)),
        at(3000),
      )
      const { length } = yield* Effect.flatMap(Storage, (storage) =>
        storage.records("net", { after: null, limit: 9999 }),
      )
      assert.strictEqual(length, 3000)
    }))

  test("go with their network", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* keep(owner, [record("x", 1)])
      yield* storage.change({ deleteNetworks: ["net"] })
      yield* storage.change({ putNetworks: [network("net")] })
      yield* claim(storage)
      assert.deepStrictEqual(yield* kept(), [])
    }))

  test("are written by the owner alone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* claim(storage)
      const refused = yield* Effect.flip(keep(owner, [record("x", 1)]))
      assert.strictEqual(refused._tag, "NotOwner")
      assert.deepStrictEqual(yield* kept(), [])
    }))
}
