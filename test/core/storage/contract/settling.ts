import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { at, batch, match } from "../builders.ts"
import { all, started, type Test } from "./support.ts"

/** The part of the contract about settling. */
export const settling = (test: Test): void => {
  test("an outcome ends what is owed, and only that", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
      const [one, two, three] = rows.map(({ seq }) => seq) as [number, number, number]
      yield* storage.settle(owner, {
        outcomes: [
          { seq: one, state: "delivered", attempts: 2, reason: null },
          { seq: two, state: "dead", attempts: 8, reason: "transient: 503" },
        ],
        offered: [one, two, three],
      })
      assert.deepStrictEqual(
        (yield* storage.owed("net", "log", all)).map(({ seq, state }) => [seq, state]),
        [[three, "offered"]],
      )
      yield* storage.settle(owner, {
        outcomes: [
          { seq: one, state: "dead", attempts: 9, reason: "late" },
          { seq: two, state: "delivered", attempts: 9, reason: null },
          { seq: 99, state: "dead", attempts: 9, reason: "unknown" },
        ],
        offered: [],
      })
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepStrictEqual(
        letters.map(({ seq, attempts, reason }) => [seq, attempts, reason]),
        [[two, 8, "transient: 503"]],
      )
      assert.deepStrictEqual(yield* storage.openSlots("net"), [{ cursor: at(3), rows: 1 }])
    }))

  test("failed attempts at what stays owed are counted on; those at what has ended are not", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(owner, batch([1, 2].map((n) => match(at(n)))))
      const [one, two] = rows.map(({ seq }) => seq) as [number, number]
      yield* storage.settle(owner, {
        outcomes: [{ seq: two, state: "dead", attempts: 8, reason: "transient: 503" }],
        offered: [one],
      })
      const tried = [one, two].map((seq) => ({ seq, attempts: 3 }))
      yield* storage.settle(owner, { outcomes: [], offered: [], tried })
      const [owed] = yield* storage.owed("net", "log", all)
      assert.deepStrictEqual([owed?.seq, owed?.state, owed?.attempts], [one, "offered", 3])
      const [letter] = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.strictEqual(letter?.attempts, 8)
    }))

  test("a row of another network is left alone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const { rows } = yield* storage.mint(owner, batch([match(at(1))]))
      const seq = rows[0]!.seq
      yield* storage.settle(other.owner, {
        outcomes: [{ seq, state: "delivered", attempts: 1, reason: null }],
        offered: [seq],
        tried: [{ seq, attempts: 5 }],
      })
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), rows)
    }))

  test("owed rows come in pages and in order, for each sink and network alone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const sinks = ["log", "alerts"]
      yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n), { sinks }))))
      yield* storage.mint(other.owner, batch([match(at(1), { sinks: ["mail"] })]))
      const first = yield* storage.owed("net", "alerts", { afterSeq: 0, limit: 2 })
      const rest = yield* storage.owed("net", "alerts", { afterSeq: first[1]!.seq, limit: 2 })
      assert.deepStrictEqual(
        [...first, ...rest].map(({ cursor }) => cursor.primary),
        [1, 2, 3],
      )
      assert.deepStrictEqual(yield* storage.owedSinks("net"), ["alerts", "log"])
      assert.deepStrictEqual(yield* storage.owedSinks("other"), ["mail"])
      assert.deepStrictEqual(yield* storage.openSlots("net"), [
        { cursor: at(1), rows: 2 },
        { cursor: at(2), rows: 2 },
        { cursor: at(3), rows: 2 },
      ])
    }))

  test("debts count owed and dead rows of a network, a monitor or a sink", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const { rows } = yield* storage.mint(
        owner,
        batch([match(at(1), { sinks: ["log", "alerts"] }), match(at(2), { monitor: "mints" })]),
      )
      yield* storage.mint(other.owner, batch([match(at(1), { sinks: ["alerts"], monitor: "mints" })]))
      yield* storage.settle(owner, {
        outcomes: [{ seq: rows[0]!.seq, state: "dead", attempts: 1, reason: "gone" }],
        offered: [],
      })
      assert.deepStrictEqual(yield* storage.debts({ network: "net" }), { owed: 2, dead: 1, actions: 0 })
      assert.deepStrictEqual(yield* storage.debts({ sink: "alerts" }), { owed: 2, dead: 0, actions: 0 })
      assert.deepStrictEqual(yield* storage.debts({ monitor: "mints" }), { owed: 2, dead: 0, actions: 0 })
      assert.deepStrictEqual(yield* storage.debts({ monitor: "transfers", sink: "log" }), {
        owed: 0,
        dead: 1,
        actions: 0,
      })
      assert.deepStrictEqual(yield* storage.debts({ network: "none" }), { owed: 0, dead: 0, actions: 0 })
    }))

  test("dead letters come in the order of dying, filtered and paged", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const sinks = ["log", "alerts"]
      yield* TestClock.setTime(1000)
      const { rows } = yield* storage.mint(
        owner,
        batch([match(at(1), { sinks }), match(at(2), { sinks, monitor: "mints" })]),
      )
      for (const i of [3, 0, 2]) {
        yield* storage.settle(owner, {
          outcomes: [{ seq: rows[i]!.seq, state: "dead", attempts: i, reason: `reason ${i}` }],
          offered: [],
        })
      }
      const list = (filter: { readonly sink?: string; readonly monitor?: string }, after = 0, limit = 10) =>
        storage.deadLetters({ network: "net", ...filter }, { after, limit })
      const dead = yield* list({})
      assert.deepStrictEqual(
        dead.map(({ seq }) => seq),
        [rows[3]!.seq, rows[0]!.seq, rows[2]!.seq],
      )
      assert.deepStrictEqual(dead[0], {
        seq: rows[3]!.seq,
        died: dead[0]!.died,
        network: "net",
        sink: "alerts",
        monitor: "mints",
        matchId: "m-2-0",
        life: 1,
        cursor: at(2),
        kind: "match",
        attempts: 3,
        reason: "reason 3",
        createdAt: 1000,
        payload: rows[3]!.payload,
        ended: false,
      })
      assert.deepStrictEqual(yield* list({}, dead[0]!.died, 1), [dead[1]!])
      assert.deepStrictEqual(yield* list({ sink: "log" }), [dead[1]!, dead[2]!])
      assert.deepStrictEqual(yield* list({ monitor: "mints" }), [dead[0]!, dead[2]!])
      assert.deepStrictEqual(yield* list({ monitor: "mints", sink: "log" }, dead[0]!.died), [dead[2]!])
      const counts = yield* Effect.all([
        storage.deadLetterCount({ network: "net" }),
        storage.deadLetterCount({ network: "net", sink: "log" }),
        storage.deadLetterCount({ network: "net", monitor: "mints", sink: "alerts" }),
        storage.deadLetterCount({ network: "other" }),
      ])
      assert.deepStrictEqual(counts, [3, 2, 1, 0])
    }))

  test("rows are offered as digests, go over to others, and settle alone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(owner, batch([1, 2, 3, 4, 5].map((n) => match(at(n)))))
      const [one, two, three, four, five] = rows.map(({ seq }) => seq) as [number, number, number, number, number]
      const stored = Effect.map(storage.owed("net", "log", all), (found) =>
        found.map(({ seq, state, digest }) => [seq, state, digest]),
      )
      yield* storage.settle(owner, {
        outcomes: [],
        offered: [four],
        digests: [{ digest: "abc", seqs: [one, two, three] }],
      })
      assert.deepStrictEqual(yield* stored, [
        [one, "offered", "abc"],
        [two, "offered", "abc"],
        [three, "offered", "abc"],
        [four, "offered", null],
        [five, "pending", null],
      ])
      yield* storage.settle(owner, {
        outcomes: [
          { seq: one, state: "delivered", attempts: 1, reason: null },
          { seq: two, state: "dead", attempts: 1, reason: "permanent: no" },
        ],
        offered: [three],
        digests: [{ digest: "ef", seqs: [one, four, five] }],
      })
      assert.deepStrictEqual(yield* stored, [
        [three, "offered", "abc"],
        [four, "offered", "ef"],
        [five, "offered", "ef"],
      ])
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net", monitor: "transfers" }), 1)
    }))

  test("rows of a durable sink hold no slot", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const matches = [match(at(1), { sinks: ["log", "kept"] })]
      const { rows } = yield* storage.mint(owner, batch(matches, { durable: new Set(["kept"]) }))
      assert.deepStrictEqual(
        rows.map(({ sink, slot }) => [sink, slot]),
        [
          ["log", true],
          ["kept", false],
        ],
      )
      assert.deepStrictEqual(yield* storage.owed("net", "kept", all), [rows[1]!])
      assert.deepStrictEqual(yield* storage.openSlots("net"), [{ cursor: at(1), rows: 1 }])
    }))
}
