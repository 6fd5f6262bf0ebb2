import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { DeliveryRow } from "../../../../core/storage/storage.ts"
import { at, batch, late, match, sink } from "../builders.ts"
import { all, claim, deliveredRange, everything, retractAll, settleAll, started, type Test } from "./support.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const ids = (rows: ReadonlyArray<{ readonly matchId: string }>) => rows.map(({ matchId }) => matchId)
const kindsOf = (rows: ReadonlyArray<DeliveryRow>) => rows.map(({ matchId, kind }) => `${kind} ${matchId}`)

/** The part of the contract about the steps of taking back that end matches. */
export const retracting = (test: Test): void => {
  const reorg = (primary: number, secondary?: number) => ({ from: at(primary, secondary), cause: "reorg" })

  test("what is taken back is recorded, for every later owner", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      assert.isNull(yield* storage.invalidation("net"))
      yield* storage.invalidate(owner, reorg(5, 3))
      yield* claim(storage)
      assert.deepStrictEqual(yield* storage.invalidation("net"), { ...reorg(5, 3), retracted: false })
      assert.isNull(yield* storage.invalidation("other"))
    }))

  test("of two records the lower wins with its cause, and its retracting starts anew", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 9)
      yield* storage.invalidate(owner, reorg(5, 3))
      yield* retractAll(owner)
      for (const from of [at(5, 3), at(5, 4), at(6)]) yield* storage.invalidate(owner, { from, cause: "later" })
      assert.deepStrictEqual(yield* storage.invalidation("net"), { ...reorg(5, 3), retracted: true })
      yield* storage.invalidate(owner, { from: at(5, 2), cause: "deeper" })
      assert.deepStrictEqual(yield* storage.invalidation("net"), { from: at(5, 2), cause: "deeper", retracted: false })
      yield* retractAll(owner)
      yield* storage.invalidate(owner, { from: at(3, 9), cause: "deepest" })
      const [step] = yield* retractAll(owner)
      assert.deepInclude(step, { matches: 2, shown: 2 })
      assert.deepStrictEqual(
        ids(yield* storage.owed("net", "log", all)),
        [6, 7, 8, 9, 4, 5].map((n) => `m-${n}-0`),
      )
    }))

  test("a network that takes nothing back has nothing to retract", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 3)
      assert.deepInclude(yield* storage.retract(owner, 10), { matches: 0, done: true, shown: 0 })
      yield* storage.invalidate(owner, reorg(1))
      yield* retractAll(owner)
      assert.deepInclude(yield* storage.retract(owner, 10), { matches: 0, done: true, shown: 0 })
      assert.lengthOf(yield* storage.owed("net", "log", all), 2)
    }))

  test("only what lies behind the proven point ends, and only of that network", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const cursors = [at(4, 9), at(5), at(5, 1), at(5, 2), at(6)]
      for (const one of [owner, other.owner]) {
        const { rows } = yield* storage.mint(one, batch(cursors.map((cursor) => match(cursor))))
        yield* settleAll(one, rows)
      }
      yield* storage.invalidate(owner, reorg(5, 1))
      const [step] = yield* retractAll(owner)
      assert.deepInclude(step, { matches: 2, done: true })
      assert.deepStrictEqual(ids(yield* storage.owed("net", "log", all)), ["m-5-2", "m-6-0"])
      assert.deepStrictEqual(yield* storage.owed("other", "log", all), [])
    }))

  test("a receiver hears of the retraction when it may have heard of the match", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const sinks = ["pending", "offered", "delivered", "dead", "discarded", "cancelled"]
      yield* storage.change({ putSinks: sinks.map(sink) })
      const { rows } = yield* storage.mint(
        owner,
        batch([match(at(1), { sinks })], { offer: new Map([["offered", 1]]), checkpoint: at(0) }),
      )
      const of = (name: string) => rows.filter((row) => row.sink === name)
      yield* settleAll(owner, of("delivered"))
      yield* settleAll(owner, [...of("dead"), ...of("discarded")], "gone")
      yield* storage.change({ discard: [{ sink: "discarded" }, { sink: "cancelled" }] })
      yield* TestClock.setTime(4000)
      yield* storage.invalidate(owner, reorg(0))
      yield* retractAll(owner)

      const heard = ["dead", "delivered", "discarded", "offered"]
      assert.deepStrictEqual(yield* storage.owedSinks("net"), heard)
      assert.deepStrictEqual(yield* storage.debts({ network: "net" }), { owed: 4, dead: 1, actions: 0 })
      assert.deepStrictEqual(yield* storage.openSlots("net"), [])
      const newest = Math.max(...rows.map(({ seq }) => seq))
      for (const name of heard) {
        const [row, ...more] = yield* storage.owed("net", name, all)
        assert.deepStrictEqual(yield* storage.owed("net", name, { ...all, kind: "retracted" }), [row!])
        assert.deepStrictEqual(yield* storage.owed("net", name, { ...all, kind: "match" }), [])
        assert.lengthOf(more, 0)
        assert.isAbove(row!.seq, newest)
        assert.deepStrictEqual(row, {
          seq: row!.seq,
          network: "net",
          sink: name,
          monitor: "transfers",
          matchId: "m-1-0",
          life: 1,
          kind: "retracted",
          cursor: at(1),
          state: "pending",
          digest: null,
          attempts: 0,
          slot: false,
          payload: "",
          time: match(at(1)).time!,
        })
      }
      const [letter] = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepInclude(letter, { sink: "dead", kind: "match", ended: true, reason: "gone" })
      // The rows of the match are over: no outcome that comes late is written.
      yield* settleAll(owner, [...of("pending"), ...of("offered")], "too late")
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 1)
    }))

  test("a retraction is delivered or dies like any other row", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 2)
      yield* TestClock.setTime(7000)
      yield* storage.invalidate(owner, reorg(0))
      yield* retractAll(owner)
      const rows = yield* storage.owed("net", "log", all)
      yield* storage.settle(owner, { outcomes: [], offered: [rows[0]!.seq] })
      assert.strictEqual((yield* storage.owed("net", "log", all))[0]!.state, "offered")
      yield* settleAll(owner, rows.slice(0, 1))
      yield* settleAll(owner, rows.slice(1), "sink down")
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), [])
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.lengthOf(letters, 1)
      assert.deepInclude(letters[0], {
        kind: "retracted",
        payload: null,
        matchId: "m-2-0",
        createdAt: 7000,
        ended: true,
      })
    }))

  test("the feed shows a retraction of what it showed, and of nothing else", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const failure = "permanent: predicate: no such field"
      yield* storage.mint(owner, batch([match(at(1)), match(at(2), { failure }), match(at(3), { sinks: [] })]))
      yield* storage.invalidate(owner, reorg(0))
      const [step] = yield* retractAll(owner)
      assert.deepStrictEqual(step, { matches: 3, done: true, feedPosition: 4, shown: 2 })
      const items = yield* storage.feedPage({ network: "net", ...everything, after: 2 })
      assert.deepStrictEqual(
        items.map(({ kind, position, matchId }) => [kind, position, matchId]),
        [
          ["retracted", 3, "m-1-0"],
          ["retracted", 4, "m-3-0"],
        ],
      )
      assert.deepInclude((yield* storage.feedStates("net"))[0], { position: 4 })
      assert.deepStrictEqual(kindsOf(yield* storage.owed("net", "log", all)), ["retracted m-2-0"])
    }))

  test("steps go in cursor order, however the matches were minted, and in each the rows in theirs", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const sinks = ["log", "alerts"]
      const minted = [
        yield* storage.mint(owner, batch([4, 6].map((n) => match(at(n), { sinks })))),
        yield* storage.mint(owner, batch([match(at(5), { id: "z", sinks }), match(at(5), { id: "a", sinks })])),
        yield* storage.mintLate(
          owner,
          late([{ ...match(at(2), { sinks }), hash: "two" }], { anchors: [{ primary: 2, hash: "two" }] }),
        ),
      ]
      for (const { rows } of minted) yield* settleAll(owner, rows)
      yield* storage.invalidate(owner, reorg(1))
      const steps = yield* retractAll(owner, 2)
      assert.deepStrictEqual(
        steps.map(({ matches }) => matches),
        [2, 2, 1],
      )
      assert.deepStrictEqual(
        steps.map(({ feedPosition, shown }) => [feedPosition, shown]),
        [
          [7, 2],
          [9, 2],
          [10, 1],
        ],
      )
      const inOrder = ["m-2-0", "m-4-0", "z", "a", "m-6-0"]
      const items = yield* storage.feedPage({ network: "net", ...everything, kinds: ["retracted"] })
      assert.deepStrictEqual(ids(items), inOrder)
      const owed = yield* Effect.forEach(sinks, (name) => storage.owed("net", name, all))
      for (const rows of owed) assert.deepStrictEqual(ids(rows), inOrder)
      assert.deepStrictEqual(
        owed
          .flat()
          .toSorted((a, b) => a.seq - b.seq)
          .map(({ sink: name }) => name),
        inOrder.flatMap(() => sinks),
      )
    }))

  test("a later owner goes on where one left off", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 10)
      yield* storage.invalidate(owner, reorg(2))
      assert.deepInclude(yield* storage.retract(owner, 3), { matches: 3, done: false })
      assert.deepInclude(yield* storage.invalidation("net"), { retracted: false })
      const next = yield* claim(storage)
      assert.deepStrictEqual(
        (yield* retractAll(next, 3)).map(({ matches }) => matches),
        [3, 2],
      )
      assert.deepInclude(yield* storage.invalidation("net"), { retracted: true })
      assert.deepStrictEqual(
        ids(yield* storage.owed("net", "log", all)),
        range(3, 10).map((n) => `m-${n}-0`),
      )
    }))

  test("a match that was minted meanwhile where steps already were ends too", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 10, 20)
      yield* storage.invalidate(owner, reorg(2))
      yield* storage.retract(owner, 5)
      yield* storage.mintLate(
        owner,
        late([{ ...match(at(5)), hash: "five" }], { anchors: [{ primary: 5, hash: "five" }] }),
      )
      const steps = yield* retractAll(owner, 5)
      assert.strictEqual(
        steps.reduce((sum, { matches }) => sum + matches, 0),
        7,
      )
      const standing = yield* storage.feedPage({
        network: "net",
        kinds: ["match"],
        after: 0,
        limit: 99,
        standing: true,
      })
      assert.deepStrictEqual(standing, [])
    }))

  test("a record at the same point is retracted from its beginning again", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      for (const life of [1, 2]) {
        yield* deliveredRange(owner, 1, 6)
        yield* storage.invalidate(owner, reorg(1))
        assert.lengthOf(yield* retractAll(owner, 2), 3)
        yield* storage.rewind(owner, 1000)
        const owed = yield* storage.owed("net", "log", all)
        assert.deepStrictEqual(
          owed.slice(-5).map((row) => [row.matchId, row.life]),
          range(2, 6).map((n) => [`m-${n}-0`, life]),
        )
      }
    }))

  test("dead retractions behind the point are owed again, in steps that are bounded too", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* deliveredRange(owner, 1, 10)
      yield* storage.invalidate(owner, reorg(4))
      yield* retractAll(owner)
      const first = yield* storage.owed("net", "log", all)
      yield* settleAll(owner, first.slice(0, 1))
      yield* settleAll(owner, first.slice(1), "sink down")
      yield* storage.rewind(owner, 1000)
      yield* deliveredRange(owner, 5, 7)
      const { rows } = yield* storage.mint(owner, batch([match(at(8)), match(at(9))]))
      yield* settleAll(owner, rows, "dead match")

      yield* storage.invalidate(owner, reorg(5))
      const steps = yield* retractAll(owner, 2)
      assert.deepStrictEqual(
        steps.map(({ matches, shown, done }) => [matches, shown, done]),
        [
          [2, 2, false],
          [2, 2, false],
          [0, 0, false],
          [0, 0, false],
          [0, 0, true],
        ],
      )
      const owed = yield* storage.owed("net", "log", all)
      assert.deepStrictEqual(
        owed.map(({ matchId, life }) => [matchId, life]),
        [...range(6, 10).map((n) => [`m-${n}-0`, 1]), ...range(6, 9).map((n) => [`m-${n}-0`, 2])],
      )
      assert.deepStrictEqual(owed.slice(0, 5), first.slice(1))
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepStrictEqual(
        letters.map(({ kind, matchId }) => [kind, matchId]),
        [
          ["match", "m-8-0"],
          ["match", "m-9-0"],
        ],
      )
      yield* settleAll(owner, owed, "down again")
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 2 + owed.length)
    }))
}
