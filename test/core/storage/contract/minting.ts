import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, batch, late, match } from "../builders.ts"
import { everything, all, started, type Test } from "./support.ts"

/** The part of the contract about minting. */
export const minting = (test: Test): void => {
  test("a match gets a feed item and a row a sink, the first of an idle worker offered", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const matches = [1, 2, 3].map((n) => match(at(1, n), { sinks: ["log", "alerts"] }))
      const minted = yield* storage.mint(owner, batch(matches, { offer: new Map([["log", 2]]) }))
      assert.deepInclude(minted, { shown: 3, feedPosition: 3 })
      assert.deepStrictEqual(
        minted.rows.map(({ sink, state, cursor }) => [sink, state, cursor.secondary]),
        [
          ["log", "offered", 1],
          ["alerts", "pending", 1],
          ["log", "offered", 2],
          ["alerts", "pending", 2],
          ["log", "pending", 3],
          ["alerts", "pending", 3],
        ],
      )
      const seqs = minted.rows.map(({ seq }) => seq)
      assert.deepStrictEqual(
        seqs,
        seqs.toSorted((a, b) => a - b),
      )
      assert.deepStrictEqual(
        yield* storage.owed("net", "log", all),
        minted.rows.filter((row) => row.sink === "log"),
      )
      assert.deepInclude(minted.rows[0], {
        network: "net",
        monitor: "transfers",
        matchId: "m-1-1",
        life: 1,
        kind: "match",
        attempts: 0,
        slot: true,
        payload: matches[0]!.payload,
      })
    }))

  test("an event whose match stands is neither written nor shown again", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([match(at(1)), match(at(2))]))
      const again = yield* storage.mint(owner, batch([match(at(1)), match(at(2)), match(at(3)), match(at(3))]))
      assert.deepStrictEqual(
        again.rows.map(({ matchId }) => matchId),
        ["m-3-0"],
      )
      assert.deepInclude(again, { shown: 1, feedPosition: 3 })
      assert.lengthOf(yield* storage.owed("net", "log", all), 3)
    }))

  test("a match without sinks is shown and owed to no one", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const minted = yield* storage.mint(owner, batch([match(at(1), { sinks: [] })]))
      assert.deepStrictEqual(minted, { rows: [], shown: 1, feedPosition: 1 })
      assert.deepStrictEqual(yield* storage.owedSinks("net"), [])
      assert.lengthOf(yield* storage.feedPage({ network: "net", ...everything }), 1)
    }))

  test("an event whose predicate failed is a dead letter and not in the feed", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const failure = "permanent: predicate: no such field"
      const minted = yield* storage.mint(
        owner,
        batch([match(at(1), { failure }), match(at(2), { failure, sinks: [] }), match(at(3))]),
      )
      assert.deepStrictEqual(
        minted.rows.map(({ matchId }) => matchId),
        ["m-3-0"],
      )
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.lengthOf(letters, 1)
      assert.deepInclude(letters[0], { matchId: "m-1-0", sink: "log", attempts: 0, reason: failure, ended: false })
      const items = yield* storage.feedPage({ network: "net", ...everything })
      assert.deepStrictEqual(
        items.map(({ matchId, position }) => [matchId, position]),
        [["m-3-0", 1]],
      )
      assert.deepStrictEqual(yield* storage.openSlots("net"), [{ cursor: at(3), rows: 1 }])
    }))

  test("a late find is minted only with the recorded hash, holds no slot and moves nothing", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([], { upTo: at(9), anchors: [{ primary: 5, hash: "five" }] }))
      const minted = yield* storage.mintLate(
        owner,
        late(
          [
            { ...match(at(4)), hash: "four" },
            { ...match(at(5)), hash: "five" },
            { ...match(at(5, 1)), hash: "other" },
            { ...match(at(6)), hash: "six" },
          ],
          {
            anchors: [
              { primary: 4, hash: "four" },
              { primary: 5, hash: "other" },
            ],
          },
        ),
      )
      assert.deepStrictEqual(
        minted.rows.map(({ matchId, slot, state }) => [matchId, slot, state]),
        [
          ["m-4-0", false, "pending"],
          ["m-5-0", false, "pending"],
        ],
      )
      assert.deepInclude(yield* storage.pipeline("net"), { minted: at(9), checkpoint: at(0), feedPosition: 2 })
      assert.deepStrictEqual(yield* storage.openSlots("net"), [])
      assert.deepStrictEqual(yield* storage.anchors("net", 5, 1), [{ primary: 5, hash: "five" }])
      const items = yield* storage.feedPage({ network: "net", ...everything })
      assert.deepStrictEqual(
        items.map((item) => item.kind === "match" && item.late),
        [true, true],
      )
      const again = yield* storage.mintLate(owner, late([{ ...match(at(5)), hash: "five" }]))
      assert.deepInclude(again, { rows: [], shown: 0 })
    }))
}
