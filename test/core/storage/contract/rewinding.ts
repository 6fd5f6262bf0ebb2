import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { MAX_SECONDARY } from "../../../../core/model/cursor.ts"
import { StorageError } from "../../../../core/storage/error.ts"
import { type NewMatch, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, match, monitor, network } from "../builders.ts"
import { all, claim, deliveredRange, retractAll, started, takeBack, type Test } from "./support.ts"

/** The part of the contract about the last step of taking back. */
export const rewinding = (test: Test): void => {
  const reorg = (primary: number) => ({ from: at(primary), cause: "reorg" })

  test("minted and checkpoint go back to the proven point, and the record is gone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 9)
      yield* storage.mint(owner, batch([], { upTo: at(20) }))
      yield* TestClock.setTime(9000)
      assert.deepStrictEqual(yield* takeBack(owner, at(5, 7)), { to: at(5, 7), moved: true, gap: null })
      assert.deepInclude(yield* storage.pipeline("net"), {
        minted: at(5, 7),
        checkpoint: at(5, 7),
        checkpointAt: 9000,
        start: at(0),
      })
      assert.isNull(yield* storage.invalidation("net"))
      yield* storage.mint(owner, batch([], { upTo: at(7), checkpoint: at(6) }))
      assert.deepInclude(yield* storage.pipeline("net"), { minted: at(7), checkpoint: at(6) })
    }))

  test("a checkpoint that is not behind the point stays, and minted goes back to it all the same", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 9)
      const before = yield* storage.pipeline("net")
      yield* storage.mint(owner, batch([], { upTo: at(20), anchors: [{ primary: 20, hash: "twenty" }] }))
      yield* TestClock.setTime(9000)
      assert.deepStrictEqual(yield* takeBack(owner, at(12)), { to: at(12), moved: false, gap: null })
      assert.deepStrictEqual(yield* storage.pipeline("net"), { ...before!, minted: at(12) })
      assert.deepStrictEqual(yield* storage.anchors("net", 99, 99), [])
      assert.deepStrictEqual(yield* takeBack(owner, at(30)), { to: at(12), moved: false, gap: null })
      assert.deepStrictEqual(yield* storage.pipeline("net"), { ...before!, minted: at(12) })
      assert.isNull(yield* storage.invalidation("net"))
    }))

  test("hashes behind the proven primary are removed", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const anchors = [3, 5, 6, 8].map((primary) => ({ primary, hash: `a${primary}` }))
      for (const one of [owner, other.owner]) {
        yield* storage.mint(one, batch([], { upTo: at(9), checkpoint: at(9), anchors }))
      }
      yield* takeBack(owner, at(5))
      assert.deepStrictEqual(
        (yield* storage.anchors("net", 99, 99)).map(({ primary }) => primary),
        [5, 3],
      )
      assert.lengthOf(yield* storage.anchors("other", 99, 99), 4)
    }))

  test("monitors take effect from the proven point when they did so behind it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.change({
        putMonitors: [
          monitor("before", {}, { effectiveFrom: at(5, 1) }),
          monitor("behind", {}, { effectiveFrom: at(5, 3) }),
          monitor("elsewhere", { network: "other" }, { effectiveFrom: at(8) }),
          monitor("later", {}, { effectiveFrom: at(8) }),
          monitor("new"),
        ],
      })
      yield* storage.mint(owner, batch([], { upTo: at(9), checkpoint: at(9) }))
      yield* takeBack(owner, at(5, 2))
      assert.deepStrictEqual(
        (yield* storage.resources).monitors.map(({ definition, effectiveFrom }) => [definition.id, effectiveFrom]),
        [
          ["before", at(5, 1)],
          ["behind", at(5, 2)],
          ["elsewhere", at(8)],
          ["later", at(5, 2)],
          ["new", null],
        ],
      )
    }))

  test("a network that takes nothing back stays where it is", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 9)
      const before = yield* storage.pipeline("net")
      assert.deepStrictEqual(yield* storage.rewind(owner, 1), { to: at(9, MAX_SECONDARY), moved: false, gap: null })
      assert.deepStrictEqual(yield* storage.pipeline("net"), before)
    }))

  test("a network without a start has nowhere to go back to", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const owner = yield* claim(storage)
      assert.deepStrictEqual(yield* takeBack(owner, at(5)), { to: null, moved: false, gap: null })
      assert.deepInclude(yield* storage.pipeline("net"), { minted: null, checkpoint: null })
      assert.isNull(yield* storage.invalidation("net"))
    }))

  test("nothing goes back while matches are still standing", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 9)
      yield* storage.invalidate(owner, reorg(5))
      yield* storage.retract(owner, 2)
      const before = yield* storage.pipeline("net")
      const error = yield* Effect.flip(storage.rewind(owner, 1000))
      assert.instanceOf(error, StorageError)
      assert.deepInclude(error, { operation: "rewind", retryable: false })
      assert.include(error.message, "standing")
      assert.deepStrictEqual(yield* storage.pipeline("net"), before)
      assert.deepStrictEqual(yield* storage.invalidation("net"), { ...reorg(5), retracted: false })
      yield* retractAll(owner)
      assert.deepInclude(yield* storage.rewind(owner, 1000), { to: at(5), moved: true })
    }))

  test("a network never goes back below its start", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const owner = yield* claim(storage)
      yield* storage.begin(owner, at(50, 2))
      yield* storage.mint(owner, batch([match(at(60))], { checkpoint: at(55), anchors: [{ primary: 49, hash: "a" }] }))
      assert.deepStrictEqual(yield* takeBack(owner, at(40)), { to: at(50, 2), moved: true, gap: null })
      assert.deepInclude(yield* storage.pipeline("net"), { minted: at(50, 2), checkpoint: at(50, 2), start: at(50, 2) })
      assert.deepStrictEqual(yield* storage.anchors("net", 99, 99), [])
      assert.deepStrictEqual(yield* takeBack(owner, at(40)), { to: at(50, 2), moved: false, gap: null })
    }))

  test("a point before the journal's end leaves a gap, that tells where the journal reached back from", () =>
    Effect.gen(function* () {
      const { owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      assert.deepInclude(yield* takeBack(owner, at(20), 10), { to: at(20), gap: null })
      yield* deliveredRange(owner, 21, 30)
      assert.deepInclude(yield* takeBack(owner, at(19), 10), { to: at(19), gap: 30 })
      // What was pruned at 30 is gone, though the checkpoint is at 19 by now.
      assert.deepInclude(yield* takeBack(owner, at(15), 10), { to: at(15), gap: 30 })
    }))

  const lives = (matches: ReadonlyArray<NewMatch>) =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const owner = yield* claim(storage)
      const { rows } = yield* storage.mint(owner, batch(matches))
      return rows.map(({ matchId, life }) => [matchId, life])
    })

  test("in a gap an id without a row opens a life that none of its earlier ones can have been", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 1000 }));
      yield* takeBack(owner, at(28))
      assert.deepInclude(yield* takeBack(owner, at(5), 10), { gap: 30 })
      // Rows of 20 to 30 are left, and of the third and fourth life nothing is known below them.
      assert.deepStrictEqual(yield* lives([match(at(6)), match(at(18))]), [
        ["m-6-0", 3],
        ["m-18-0", 3],
      ])
      assert.deepStrictEqual(yield* lives([match(at(6)), match(at(17)), match(at(19)), match(at(20)), match(at(31))]), [
        ["m-17-0", 3],
        ["m-19-0", 3],
        ["m-20-0", 2],
        ["m-31-0", 1],
      ])
    }))

  test("a depth that was raised since brings no row back that was pruned by the one before", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 1000 }));
      assert.deepInclude(yield* takeBack(owner, at(5), 1000), { gap: 30 })
      assert.deepStrictEqual(yield* lives([match(at(6))]), [["m-6-0", 2]])
    }))

  test("a later gap that reaches less far leaves the first as it is, and counts on", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 1000 }));
      yield* takeBack(owner, at(5), 10)
      yield* storage.mint(owner, batch([], { upTo: at(17), checkpoint: at(17) }))
      assert.deepInclude(yield* takeBack(owner, at(6), 10), { gap: 30 })
      assert.deepStrictEqual(yield* lives([match(at(7)), match(at(15))]), [
        ["m-7-0", 3],
        ["m-15-0", 3],
      ])
    }))

  test("a network that was deleted and made again begins with first lives", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      yield* takeBack(owner, at(5), 10)
      yield* storage.change({ deleteNetworks: ["net"] })
      yield* storage.change({ putNetworks: [network("net")] })
      const next = yield* claim(storage)
      yield* storage.begin(next, at(3))
      assert.deepStrictEqual(yield* lives([match(at(6))]), [["m-6-0", 1]])
      assert.lengthOf(yield* storage.owed("net", "log", all), 1)
    }))
}
