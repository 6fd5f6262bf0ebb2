import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { LetterFilter } from "../../../../core/storage/dead-letter.ts"
import type { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, match, monitor, network, sink } from "../builders.ts"
import { all, retractAll, settleAll, started, takeBack, type Test } from "./support.ts"

const page = { after: 0, limit: 1000 }

/** What a list holds, and that the count says so. */
const list = Effect.fnUntraced(function* (storage: Storage["Service"], filter: Partial<LetterFilter> = {}) {
  const whole = { network: "net", ...filter }
  const found = yield* storage.deadLetters(whole, page)
  assert.strictEqual(yield* storage.deadLetterCount(whole), found.length)
  const between = { after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: 1000 }
  const last = found.at(-1)?.died ?? 0
  assert.deepStrictEqual(yield* storage.deadLettersBetween(whole, between), { letters: found.length, last })
  return found
})

const ids = (rows: ReadonlyArray<{ readonly matchId: string }>) => rows.map(({ matchId }) => matchId)

/** The part of the contract about the operations of dead letters. */
export const letters = (test: Test): void => {
  /** Deliveries of two monitors to two sinks, all dead. */
  const dead = Effect.fnUntraced(function* () {
    const run = yield* started()
    const matches = [1, 2, 3, 4].map((n) =>
      match(at(n), { sinks: ["log", "alerts"], monitor: n % 2 === 0 ? "even" : "odd" }),
    )
    const { rows } = yield* run.storage.mint(run.owner, batch(matches))
    yield* settleAll(run.owner, rows, "transient: down")
    return { ...run, rows }
  })

  test("are listed and counted by sink and monitor", () =>
    Effect.gen(function* () {
      const { storage } = yield* dead()
      assert.lengthOf(yield* list(storage), 8)
      assert.deepStrictEqual(ids(yield* list(storage, { sink: "log" })), ["m-1-0", "m-2-0", "m-3-0", "m-4-0"])
      assert.deepStrictEqual(ids(yield* list(storage, { sink: "log", monitor: "even" })), ["m-2-0", "m-4-0"])
      assert.deepStrictEqual(ids(yield* list(storage, { monitor: "odd" })), ["m-1-0", "m-1-0", "m-3-0", "m-3-0"])
      assert.deepStrictEqual(yield* list(storage, { network: "other" }), [])
      assert.deepInclude(yield* storage.debts({ sink: "log" }), { dead: 4 })
      assert.deepInclude(yield* storage.debts({ network: "net", monitor: "even" }), { dead: 4 })
    }))

  test("are listed and counted by kind and by whether their match was taken back, in the order of dying", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* dead()
      const shown = Effect.fnUntraced(function* (filter: Partial<LetterFilter>) {
        return (yield* list(storage, filter)).map(({ sink, kind, matchId, ended }) =>
          [sink, kind, matchId, ...(ended ? ["ended"] : [])].join(" "),
        )
      })
      yield* takeBack(owner, at(3))
      const ended = ["log match m-4-0 ended", "alerts match m-4-0 ended"]
      assert.sameMembers(yield* shown({ ended: true }), ended)
      yield* settleAll(owner, yield* storage.owed("net", "log", all), "transient: sink down")
      const retraction = "log retracted m-4-0 ended"
      assert.deepStrictEqual((yield* shown({ ended: true })).at(-1), retraction)
      assert.sameMembers(yield* shown({ ended: true }), [...ended, retraction])
      assert.deepStrictEqual(yield* shown({ kind: "retracted", monitor: "even" }), [retraction])
      assert.deepStrictEqual(yield* shown({ kind: "retracted", ended: false }), [])
      assert.deepStrictEqual(yield* shown({ kind: "match", ended: true, sink: "log" }), ["log match m-4-0 ended"])
      assert.lengthOf(yield* list(storage, { ended: false }), 6)
      assert.lengthOf(yield* list(storage, { kind: "match" }), 8)
      const whole = yield* list(storage)
      assert.deepStrictEqual(
        whole.map(({ died }) => died),
        whole.map(({ died }) => died).toSorted((a, b) => a - b),
      )
      const [first, second, third] = whole.map(({ died }) => died) as [number, number, number]
      const between = (limit: number) =>
        storage.deadLettersBetween({ network: "net" }, { after: first, upTo: third, limit })
      assert.deepStrictEqual(yield* between(9), { letters: 2, last: third })
      assert.deepStrictEqual(yield* between(1), { letters: 1, last: second })
      yield* storage.offerRetractions(owner, "log", 10)
      assert.deepStrictEqual(yield* shown({ kind: "retracted" }), [])
    }))

  test("an event whose predicate failed is one as well", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([match(at(1), { failure: "permanent: predicate: no" })]))
      assert.deepStrictEqual(ids(yield* list(storage, { monitor: "transfers" })), ["m-1-0"])
    }))

  test("one whose replay failed keeps its place and its time, with the new attempts and reason", () =>
    Effect.gen(function* () {
      const { storage, owner, rows } = yield* dead()
      const before = yield* list(storage)
      const { seq } = rows[2]!
      assert.isTrue(yield* storage.replayed(owner, { seq, state: "dead", attempts: 4, reason: "transient: again" }))
      assert.deepStrictEqual(
        yield* list(storage),
        before.map((letter) => (letter.seq === seq ? { ...letter, attempts: 4, reason: "transient: again" } : letter)),
      )
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), [])
    }))

  test("one that a replay delivered is gone, and its match is still retracted", () =>
    Effect.gen(function* () {
      const { storage, owner, rows } = yield* dead()
      const { seq } = rows[6]!
      assert.isTrue(yield* storage.replayed(owner, { seq, state: "delivered", attempts: 2, reason: null }))
      assert.isNull(yield* storage.deadLetter("net", seq))
      assert.lengthOf(yield* list(storage), 7)
      // What is no letter stays as it is.
      assert.isFalse(yield* storage.replayed(owner, { seq, state: "dead", attempts: 9, reason: "transient: late" }))
      assert.lengthOf(yield* list(storage), 7)
      yield* takeBack(owner, at(3))
      assert.deepStrictEqual(ids(yield* storage.owed("net", "log", all)), ["m-4-0"])
    }))

  test("are counted for each sink and monitor that has any", () =>
    Effect.gen(function* () {
      const { storage, owner, rows } = yield* dead()
      const ofLog = (yield* list(storage, { sink: "log", monitor: "even" })).map(({ seq }) => seq)
      yield* storage.discard(owner, [...ofLog, rows[0]!.seq])
      assert.deepStrictEqual(yield* storage.deadLetterCounts("net"), [
        { sink: "alerts", monitor: "even", letters: 2 },
        { sink: "alerts", monitor: "odd", letters: 2 },
        { sink: "log", monitor: "odd", letters: 1 },
      ])
      assert.deepStrictEqual(yield* storage.deadLetterCounts("other"), [])
    }))

  test("of another network are out of an owner's reach", () =>
    Effect.gen(function* () {
      const { storage, rows } = yield* dead()
      const other = yield* started("other")
      const before = yield* list(storage)
      const { seq } = rows[0]!
      for (const state of ["dead", "delivered"] as const) {
        assert.isFalse(yield* storage.replayed(other.owner, { seq, state, attempts: 9, reason: null }))
      }
      assert.strictEqual(yield* storage.discard(other.owner, [seq]), 0)
      assert.isNull(yield* storage.deadLetter("other", seq))
      assert.deepStrictEqual(yield* list(storage), before)
    }))

  test("one that is discarded is gone, and its match is still retracted", () =>
    Effect.gen(function* () {
      const { storage, owner, rows } = yield* dead()
      assert.strictEqual(yield* storage.discard(owner, [rows[6]!.seq, rows[0]!.seq]), 2)
      assert.strictEqual(yield* storage.discard(owner, [rows[6]!.seq, rows[1]!.seq]), 1)
      assert.lengthOf(yield* list(storage), 5)
      yield* takeBack(owner, at(3))
      assert.deepStrictEqual(ids(yield* storage.owed("net", "log", all)), ["m-4-0"])
    }))

  test("retractions that died are offered again, in the order of dying", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* dead()
      yield* takeBack(owner, at(1))
      for (const name of ["log", "alerts"]) {
        yield* settleAll(owner, yield* storage.owed("net", name, all), "transient: sink down")
      }
      const first = yield* storage.offerRetractions(owner, "log", 2)
      assert.deepStrictEqual(ids(first), ["m-2-0", "m-3-0"])
      assert.deepInclude(first[0], { kind: "retracted", state: "pending", attempts: 0, sink: "log", payload: "" })
      assert.deepStrictEqual(ids(yield* storage.offerRetractions(owner, "log", 2)), ["m-4-0"])
      assert.deepStrictEqual(yield* storage.offerRetractions(owner, "log", 2), [])
      const owed = yield* storage.owed("net", "log", all)
      assert.deepStrictEqual(ids(owed), ["m-2-0", "m-3-0", "m-4-0"])
      assert.deepStrictEqual(owed.slice(0, 2), first)
      assert.lengthOf(yield* list(storage, { sink: "alerts" }), 7)
    }))

  test("a retraction that died is not offered while a later life of its match stands", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* dead()
      yield* takeBack(owner, at(3))
      yield* settleAll(owner, yield* storage.owed("net", "log", all), "transient: sink down")
      const again = yield* storage.mint(owner, batch([match(at(4), { monitor: "even" })]))
      assert.deepInclude(again.rows[0], { matchId: "m-4-0", life: 2 })
      const owedTo = (sink: string) =>
        storage.isRetractionOwed({ network: "net", sink, matchId: "m-4-0", cursor: at(4) })
      assert.deepStrictEqual([yield* owedTo("log"), yield* owedTo("alerts")], [false, true])
      assert.deepStrictEqual(yield* storage.offerRetractions(owner, "log", 10), [])
      yield* settleAll(owner, again.rows)
      yield* storage.invalidate(owner, { from: at(3), cause: "reorg" })
      yield* retractAll(owner)
      assert.deepStrictEqual(
        (yield* storage.owed("net", "log", all)).map(({ life }) => life),
        [1, 2],
      )
    }))

  test("the oldest owed row tells its age, and owed rows are counted piece by piece", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      assert.isNull(yield* storage.oldestOwed("net", "log"))
      const { rows } = yield* storage.mint(owner, batch([match(at(1)), match(at(2))]))
      assert.strictEqual(yield* storage.oldestOwed("net", "log"), 0)
      const count = (afterSeq: number, limit: number) => storage.countOwed("net", "log", { afterSeq, limit })
      assert.deepStrictEqual(yield* count(0, 1), { rows: 1, lastSeq: rows[0]!.seq })
      assert.deepStrictEqual(yield* count(rows[0]!.seq, 9), { rows: 1, lastSeq: rows[1]!.seq })
      assert.deepStrictEqual(yield* count(rows[1]!.seq, 9), { rows: 0, lastSeq: 0 })
      yield* settleAll(owner, rows)
      assert.strictEqual((yield* count(0, 9)).rows, 0)
      assert.isNull(yield* storage.oldestOwed("net", "log"))
    }))

  test("a deleted monitor's matches are let go of, and their retractions are owed all the same", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.change({ putNetworks: [network("net")], putMonitors: [monitor("transfers")] })
      const { rows } = yield* storage.mint(owner, batch([match(at(1)), match(at(2))]))
      yield* settleAll(owner, rows)
      yield* storage.mint(owner, batch([match(at(3), { sinks: ["log", "alerts"] })]))
      yield* takeBack(owner, at(1))
      assert.deepInclude(yield* storage.debts({ monitor: "transfers" }), { owed: 1 })
      yield* storage.mint(owner, batch([match(at(4))]))
      yield* storage.change({ deleteMonitors: ["transfers"], discard: [{ monitor: "transfers" }] })
      assert.deepStrictEqual(
        (yield* storage.owed("net", "log", all)).map(({ matchId, kind }) => [matchId, kind]),
        [["m-2-0", "retracted"]],
      )
    }))

  test("go with what is deleted, and the count with them", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* dead()
      yield* storage.change({ putNetworks: [network("net")], putMonitors: [monitor("odd")], putSinks: [sink("log")] })
      yield* storage.change({ deleteSinks: ["log"], discard: [{ sink: "log" }] })
      assert.lengthOf(yield* list(storage), 4)
      yield* storage.change({ deleteMonitors: ["odd"], discard: [{ monitor: "odd" }] })
      assert.lengthOf(yield* list(storage), 2)
      yield* storage.release(owner)
      yield* storage.change({ deleteNetworks: ["net"] })
      assert.deepStrictEqual(yield* list(storage), [])
    }))
}
