import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type Owner, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, match } from "../builders.ts"
import { all, claim, deliveredRange, everything, started, type Test } from "./support.ts"

/** The part of the contract about pruning. */
export const pruning = (test: Test): void => {
  const journalDepth = 10
  const prune = Effect.fnUntraced(function* (owner: Owner, feedRetention: number, limit = 1000) {
    const storage = yield* Storage
    let calls = 0
    while (yield* storage.prune(owner, { journalDepth, feedRetention, actionRetention: 0, limit })) calls++
    return calls
  })

  test("keeps the retention of the feed and everything within the journal", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 30)
      const kept = Effect.map(storage.feedPage({ network: "net", ...everything }), (items) =>
        items.map(({ position }) => position),
      )
      yield* prune(owner, 25)
      assert.strictEqual((yield* kept)[0], 6)
      assert.deepStrictEqual(yield* storage.feedStates("net"), [
        { network: "net", position: 30, trims: [{ monitor: "transfers", kind: "match", position: 5 }] },
      ])
      yield* prune(owner, 3)
      assert.strictEqual((yield* kept)[0], 20)
      assert.strictEqual((yield* storage.feedStates("net"))[0]!.trims[0]!.position, 19)
      assert.isFalse(yield* storage.prune(owner, { journalDepth, feedRetention: 3, actionRetention: 0, limit: 1000 }))
    }))

  test("keeps dead letters with their match, and owed rows", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(
        owner,
        batch([match(at(1)), match(at(2)), match(at(3))], { anchors: [{ primary: 2, hash: "two" }] }),
      )
      yield* storage.settle(owner, {
        outcomes: [
          { seq: rows[0]!.seq, state: "dead", attempts: 8, reason: "gone" },
          { seq: rows[2]!.seq, state: "delivered", attempts: 1, reason: null },
        ],
        offered: [],
      })
      yield* deliveredRange(owner, 40, 50)
      yield* prune(owner, 1)
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepStrictEqual(
        letters.map(({ matchId, payload }) => [matchId, payload]),
        [["m-1-0", rows[0]!.payload]],
      )
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), [rows[1]!])
      const again = yield* storage.mint(owner, batch([match(at(1)), match(at(2)), match(at(3))]))
      assert.deepStrictEqual(
        again.rows.map(({ matchId }) => matchId),
        ["m-3-0"],
      )
    }))

  test("removes a row that was delivered after others of its age were pruned", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(owner, batch([match(at(1)), match(at(2))]))
      yield* deliveredRange(owner, 3, 30)
      yield* prune(owner, 1, 3)
      yield* storage.settle(owner, {
        outcomes: rows.map(({ seq }) => ({ seq, state: "delivered", attempts: 1, reason: null })),
        offered: [],
      })
      yield* prune(owner, 1, 3)
      const again = yield* storage.mint(owner, batch([match(at(1)), match(at(2))]))
      assert.lengthOf(again.rows, 2)
    }))

  test("touches no more rows a call than it may", () =>
    Effect.gen(function* () {
      const { owner } = yield* started()
      yield* deliveredRange(owner, 1, 60, ["log", "alerts"])
      assert.isAtLeast(yield* prune(owner, 1, 20), (49 * 2 + 49) / 20)
    }))

  test("keeps the newest anchor at or below the journal's end", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const anchors = [1, 5, 15, 25, 30].map((primary) => ({ primary, hash: `a${primary}` }))
      yield* storage.mint(owner, batch([], { upTo: at(30), checkpoint: at(30), anchors }))
      yield* prune(owner, 1)
      assert.deepStrictEqual(
        (yield* storage.anchors("net", 100, 10)).map(({ primary }) => primary),
        [30, 25, 15],
      )
    }))

  test("does nothing before the start was resolved", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const owner = yield* claim(storage)
      assert.strictEqual(yield* prune(owner, 1), 0)
    }))
}
