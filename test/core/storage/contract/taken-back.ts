import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, batch, match } from "../builders.ts"
import { all, everything, settleAll, started, takeBack, type Test } from "./support.ts"

const seen = (items: ReadonlyArray<{ readonly kind: string; readonly position: number }>) =>
  items.map(({ kind, position }) => `${kind} ${position}`)

/** Matches at 1 to 3, the last of which was taken back at feed position 4. */
const withOneTakenBack = Effect.fnUntraced(function* () {
  const { storage, owner } = yield* started()
  const { rows } = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
  yield* takeBack(owner, at(2))
  return { storage, owner, rows, page: { network: "net", ...everything } }
})

/** The part of the contract about matches that were taken back. */
export const takenBack = (test: Test): void => {
  test("a match that was taken back is owed to no one, and an outcome of it changes nothing", () =>
    Effect.gen(function* () {
      const { storage, owner, rows } = yield* withOneTakenBack()
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), rows.slice(0, 2))
      assert.deepStrictEqual(yield* storage.debts({ network: "net" }), { owed: 2, dead: 0, actions: 0 })
      assert.deepStrictEqual(yield* storage.openSlots("net"), [
        { cursor: at(1), rows: 1 },
        { cursor: at(2), rows: 1 },
      ])
      const { seq } = rows[2]!
      yield* storage.settle(owner, { outcomes: [{ seq, state: "dead", attempts: 1, reason: "gone" }], offered: [seq] })
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 0)
      assert.lengthOf(yield* storage.owed("net", "log", all), 2)
    }))

  test("a match that was taken back stands in the feed with its retraction, and is left out of what is standing", () =>
    Effect.gen(function* () {
      const { storage, page } = yield* withOneTakenBack()
      assert.deepStrictEqual(seen(yield* storage.feedPage(page)), ["match 1", "match 2", "match 3", "retracted 4"])
      assert.deepStrictEqual(seen(yield* storage.feedPage({ ...page, after: 2, limit: 1 })), ["match 3"])
      assert.deepStrictEqual(seen(yield* storage.feedPage({ ...page, kinds: ["match"], standing: true })), [
        "match 1",
        "match 2",
      ])
      assert.deepStrictEqual(yield* storage.feedPage({ ...page, monitor: "mints" }), [])
      const [retraction] = yield* storage.feedPage({ ...page, monitor: "transfers", after: 3 })
      assert.deepStrictEqual(retraction, {
        kind: "retracted",
        network: "net",
        position: 4,
        life: 1,
        matchId: "m-3-0",
        monitor: "transfers",
        cursor: at(3),
      })
    }))

  test("a match that was taken back opens its next life when it is found again", () =>
    Effect.gen(function* () {
      const { storage, owner, page } = yield* withOneTakenBack()
      const again = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
      assert.deepStrictEqual(
        again.rows.map(({ matchId, life }) => [matchId, life]),
        [["m-3-0", 2]],
      )
      assert.deepInclude(again, { shown: 1, feedPosition: 5 })
      assert.deepInclude(yield* storage.mint(owner, batch([match(at(3))])), { rows: [], shown: 0 })
      yield* settleAll(owner, again.rows)
      yield* takeBack(owner, at(2))
      const owed = yield* storage.owed("net", "log", all)
      assert.deepStrictEqual(
        owed.map(({ kind, matchId, life }) => [kind, matchId, life]),
        [
          ["match", "m-1-0", 1],
          ["match", "m-2-0", 1],
          ["retracted", "m-3-0", 2],
        ],
      )
      const retractions = yield* storage.feedPage({ ...page, kinds: ["retracted"] })
      assert.deepStrictEqual(
        retractions.map(({ position, life }) => [position, life]),
        [
          [4, 1],
          [6, 2],
        ],
      )
    }))

  test("a match that was taken back is pruned with its retraction, and both trims are remembered", () =>
    Effect.gen(function* () {
      const { storage, owner, rows, page } = yield* withOneTakenBack()
      yield* settleAll(owner, rows.slice(0, 2))
      yield* storage.mint(owner, batch([match(at(30))], { checkpoint: at(30) }))
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 100 }));
      const [state] = yield* storage.feedStates("net")
      assert.sameDeepMembers(
        [...state!.trims],
        [
          { monitor: "transfers", kind: "match", position: 3 },
          { monitor: "transfers", kind: "retracted", position: 4 },
        ],
      )
      assert.deepStrictEqual(seen(yield* storage.feedPage(page)), ["match 5"])
      const again = yield* storage.mint(owner, batch([match(at(3))]))
      assert.deepStrictEqual(
        again.rows.map(({ life }) => life),
        [1],
      )
    }))

  test("a delivered retraction is pruned like any row, one that is owed or dead is kept with its match", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const minted = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
      yield* settleAll(owner, minted.rows)
      yield* takeBack(owner, at(0))
      const owed = yield* storage.owed("net", "log", all)
      yield* settleAll(owner, owed.slice(0, 1))
      yield* settleAll(owner, owed.slice(1, 2), "sink down")
      yield* storage.mint(owner, batch([match(at(30))], { checkpoint: at(30) }))
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 100 }));

      assert.deepStrictEqual((yield* storage.owed("net", "log", all))[0], owed[2])
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepStrictEqual(
        letters.map(({ kind, matchId }) => [kind, matchId]),
        [["retracted", "m-2-0"]],
      )
      // Matches that were kept open their next life, of the one that is gone nothing is known.
      const again = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
      assert.deepStrictEqual(
        again.rows.map(({ life }) => life),
        [1, 2, 2],
      )
    }))
}
