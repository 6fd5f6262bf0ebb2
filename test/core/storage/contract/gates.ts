import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Gate } from "../../../../core/model/policy.ts"
import type { DeliveryRow, NewMatch } from "../../../../core/storage/storage.ts"
import { at, batch, hit, late, match, monitor, network } from "../builders.ts"
import { all, claim, everything, retractAll, settleAll, started, takeBack, type Test } from "./support.ts"

const threshold = (count: number, windowMs = 10): Gate => ({ type: "threshold", count, windowMs, by: null })
const once = (windowMs = 10): Gate => ({ type: "max_once", windowMs, by: null })

/** A hit at a primary, which is also its event time unless another is given. */
const hitAt = (gate: Gate, primary: number, over: Parameters<typeof hit>[2] = {}) =>
  hit(at(primary), gate, { time: primary, ...over })

const ids = (rows: ReadonlyArray<DeliveryRow>) => rows.map(({ matchId }) => matchId)

/** A network that has begun, with monitors that have one revision. */
const watched = Effect.fnUntraced(function* () {
  const run = yield* started()
  const ids = ["transfers", "other", "m", "once", "wide", "cut"]
  yield* run.storage.change({ putNetworks: [network("net")], putMonitors: ids.map((id) => monitor(id)) })
  return run
})

/** The members of each emission, in the order of its rows. */
const digests = (rows: ReadonlyArray<DeliveryRow>) =>
  [...Map.groupBy(rows, ({ digest, seq }) => digest ?? seq).values()].map(ids)

/** The part of the contract about gates. */
export const gates = (test: Test): void => {
  const standing = { network: "net", ...everything, standing: true }
  const mintEach = Effect.fnUntraced(function* (
    { storage, owner }: Effect.Success<ReturnType<typeof watched>>,
    matches: ReadonlyArray<NewMatch>,
  ) {
    const rows: Array<DeliveryRow> = []
    for (const one of matches) rows.push(...(yield* storage.mint(owner, batch([one]))).rows)
    return rows
  })

  for (const [title, each] of [
    ["hits of one batch", false],
    ["hits of a batch each", true],
  ] as const) {
    test(`threshold: ${title} are held until they are enough, then one emission, and counting starts anew`, () =>
      Effect.gen(function* () {
        const run = yield* watched()
        const hits = [1, 2, 3, 4, 5, 6, 7].map((n) => hitAt(threshold(3), n))
        const rows = each ? yield* mintEach(run, hits) : (yield* run.storage.mint(run.owner, batch(hits))).rows
        assert.deepStrictEqual(digests(rows), [
          ["m-1-0", "m-2-0", "m-3-0"],
          ["m-4-0", "m-5-0", "m-6-0"],
        ])
        assert.deepStrictEqual(yield* run.storage.owed("net", "log", all), rows)
        const shown = yield* run.storage.feedPage(standing)
        assert.deepStrictEqual(
          shown.map((item) => item.kind === "match" && [item.matchId, item.emission]),
          rows.map(({ matchId, digest }) => [matchId, digest]),
        )
      }))
  }

  test("an emission's rows hold no slot, lie where its newest member lies, and one behind another for each sink", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const sinks = ["log", "alerts"]
      const { rows } = yield* storage.mint(owner, batch([1, 2].map((n) => hitAt(threshold(2), n, { sinks }))))
      assert.deepStrictEqual(
        rows.map(({ sink, matchId, slot, cursor }) => [sink, matchId, slot, cursor]),
        [
          ["log", "m-1-0", false, at(2)],
          ["log", "m-2-0", false, at(2)],
          ["alerts", "m-1-0", false, at(2)],
          ["alerts", "m-2-0", false, at(2)],
        ],
      )
      assert.lengthOf(new Set(rows.map(({ digest }) => digest)), 1)
      assert.deepStrictEqual(yield* storage.openSlots("net"), [])
    }))

  test("threshold: times may span the window, and no more", () =>
    Effect.gen(function* () {
      const run = yield* watched()
      const rows = yield* mintEach(run, [
        hitAt(threshold(2), 1, { time: 100 }),
        hitAt(threshold(2), 2, { time: 111 }),
        hitAt(threshold(2), 3, { time: 121 }),
      ])
      assert.deepStrictEqual(digests(rows), [["m-2-0", "m-3-0"]])
    }))

  test("keys and monitors count apart", () =>
    Effect.gen(function* () {
      const run = yield* watched()
      const rows = yield* mintEach(run, [
        hitAt(threshold(2), 1, { key: "a" }),
        hitAt(threshold(2), 2, { key: "b" }),
        hitAt(threshold(2), 3, { key: "a", monitor: "other" }),
        hitAt(threshold(2), 4, { key: "b" }),
      ])
      assert.deepStrictEqual(digests(rows), [["m-2-0", "m-4-0"]])
    }))

  test("a hit that is recorded, or whose match stands, is ignored", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([match(at(1))]))
      const again = batch([hitAt(threshold(3), 1), hitAt(threshold(3), 2), hitAt(threshold(3), 3)])
      for (let i = 0; i < 3; i++) assert.deepStrictEqual((yield* storage.mint(owner, again)).rows, [])
      const { rows } = yield* storage.mint(owner, batch([hitAt(threshold(3), 4)]))
      assert.deepStrictEqual(digests(rows), [["m-2-0", "m-3-0", "m-4-0"]])
      assert.deepStrictEqual((yield* storage.mint(owner, again)).rows, [])
    }))

  test("a batch that breaks records, consumes and emits nothing", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([hitAt(threshold(2), 1)]))
      const broken = match(at(3), { payload: null as unknown as string })
      yield* Effect.flip(storage.mint(owner, batch([hitAt(threshold(2), 2), broken])))
      assert.deepStrictEqual(yield* storage.feedPage(standing), [])
      const { rows } = yield* storage.mint(owner, batch([hitAt(threshold(2), 2)]))
      assert.deepStrictEqual(digests(rows), [["m-1-0", "m-2-0"]])
    }))

  test("a gate of one is a plain match", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const { rows } = yield* storage.mint(owner, batch([hitAt(threshold(1), 1), hitAt(once(), 2, { monitor: "m" })]))
      assert.deepStrictEqual(
        rows.map(({ digest, slot, cursor }) => [digest, slot, cursor.primary]),
        [
          [null, false, 1],
          [null, false, 2],
        ],
      )
    }))

  test("max_once: the first hit of a window is emitted, the others are not, and the next opens another", () =>
    Effect.gen(function* () {
      const run = yield* watched()
      const rows = yield* mintEach(
        run,
        [1, 5, 10, 11, 12, 20, 21].map((n) => hitAt(once(), n)),
      )
      assert.deepStrictEqual(ids(rows), ["m-1-0", "m-11-0", "m-21-0"])
      assert.deepStrictEqual((yield* run.storage.mint(run.owner, batch([hitAt(once(), 5)]))).rows, [])
    }))

  for (const { title, from, next, expected } of [
    {
      title: "whose first member is gone",
      from: 0,
      next: [4, 5, 6],
      expected: [["m-4-0", "m-5-0", "m-6-0"]],
    },
    { title: "whose middle member is gone", from: 1, next: [4, 5], expected: [["m-1-0", "m-4-0", "m-5-0"]] },
    { title: "whose last member is gone", from: 2, next: [4], expected: [["m-1-0", "m-2-0", "m-4-0"]] },
  ]) {
    test(`threshold: a session ${title} is folded as if only the rest had been seen`, () =>
      Effect.gen(function* () {
        const { storage, owner } = yield* watched()
        const { rows } = yield* storage.mint(owner, batch([1, 2, 3].map((n) => hitAt(threshold(3), n))))
        yield* settleAll(owner, rows)
        yield* takeBack(owner, at(from, 9))
        const retractions = yield* storage.owed("net", "log", all)
        assert.deepStrictEqual(
          retractions.map(({ kind, matchId }) => [kind, matchId]).toSorted(),
          [1, 2, 3].map((n) => ["retracted", `m-${n}-0`]),
        )
        assert.deepStrictEqual(
          yield* storage.feedPage(standing),
          (yield* storage.feedPage(standing)).filter(({ kind }) => kind !== "match"),
        )
        const after = yield* storage.mint(owner, batch(next.map((n) => hitAt(threshold(3), n))))
        assert.deepStrictEqual(digests(after.rows), expected)
        assert.deepStrictEqual(
          after.rows.map(({ life }) => life),
          expected[0]!.map((id) => (Number(id.split("-")[1]) <= 3 ? 2 : 1)),
        )
      }))
  }

  test("threshold: a later hit that is gone did not let go of an earlier one", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([hitAt(threshold(2), 1), hitAt(threshold(2), 5, { time: 1000 })]))
      yield* takeBack(owner, at(3))
      const { rows } = yield* storage.mint(owner, batch([hitAt(threshold(2), 5, { id: "fork", time: 8 })]))
      assert.deepStrictEqual(digests(rows), [["m-1-0", "fork"]])
    }))

  test("max_once: with its opener a window is gone", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const { rows } = yield* storage.mint(owner, batch([hitAt(once(), 5), hitAt(once(), 6)]))
      yield* settleAll(owner, rows)
      yield* takeBack(owner, at(4))
      const next = yield* storage.mint(owner, batch([hitAt(once(), 6), hitAt(once(), 7)]))
      assert.deepStrictEqual(ids(next.rows), ["m-6-0"])
    }))

  test("an emission before the proven point stands", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const { rows } = yield* storage.mint(owner, batch([1, 2, 3].map((n) => hitAt(threshold(2), n))))
      yield* settleAll(owner, rows)
      yield* takeBack(owner, at(2))
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), [])
      const next = yield* storage.mint(owner, batch([4, 5].map((n) => hitAt(threshold(2), n))))
      assert.deepStrictEqual(digests(next.rows), [["m-4-0", "m-5-0"]])
    }))

  test("a step of taking back ends no more members than it may, and all in the end", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const hits = Array.from({ length: 25 }, (_, i) => hitAt(threshold(25, 100), i + 1))
      const { rows } = yield* storage.mint(owner, batch(hits))
      yield* settleAll(owner, rows)
      yield* storage.invalidate(owner, { from: at(24), cause: "reorg" })
      let ended = 0
      while (true) {
        const step = yield* storage.retract(owner, 10)
        assert.isAtMost(step.matches, 10)
        ended += step.matches
        if (step.done) break
      }
      assert.strictEqual(ended, 25)
      assert.lengthOf(yield* storage.owed("net", "log", all), 25)
    }))

  test("a new revision of a monitor drops what it holds and leaves what was emitted", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const put = (matchRevision: string) =>
        storage.change({ putMonitors: [monitor("transfers", {}, { matchRevision })] })
      const first = yield* storage.mint(owner, batch([1, 2, 3].map((n) => hitAt(threshold(2), n))))
      yield* settleAll(owner, first.rows)
      yield* put("r2")
      yield* put("r1")
      const next = yield* storage.mint(owner, batch([hitAt(threshold(2), 4)]))
      assert.deepStrictEqual(next.rows, [])
      assert.lengthOf(yield* storage.feedPage(standing), 2)
      // Survivors of what the present revision did not emit are not held again.
      yield* put("r2")
      yield* takeBack(owner, at(1))
      const other = yield* storage.mint(owner, batch([hitAt(threshold(2), 5, { revision: "r2" })]))
      assert.deepStrictEqual(other.rows, [])
      const again = yield* storage.mint(owner, batch([hitAt(threshold(2), 1, { revision: "r2" })]))
      assert.deepStrictEqual(digests(again.rows), [["m-1-0", "m-5-0"]])
    }))

  test("a new revision drops the windows that are open, also when the old one is put back", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([hitAt(once(100), 1)]))
      for (const matchRevision of ["r2", "r1"]) {
        yield* storage.change({ putMonitors: [monitor("transfers", {}, { matchRevision })] })
      }
      const next = yield* storage.mint(owner, batch([hitAt(once(100), 2), hitAt(once(100), 3)]))
      assert.deepStrictEqual(ids(next.rows), ["m-2-0"])
      // What opened a window stands: it is no hit again.
      assert.deepStrictEqual((yield* storage.mint(owner, batch([hitAt(once(100), 1)]))).rows, [])
    }))

  test("survivors of what a revision emitted before it was put back are not held again", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([1, 2, 3].map((n) => hitAt(threshold(3), n))))
      for (const matchRevision of ["r2", "r1"]) {
        yield* storage.change({ putMonitors: [monitor("transfers", {}, { matchRevision })] })
      }
      yield* takeBack(owner, at(2))
      assert.deepStrictEqual((yield* storage.mint(owner, batch([hitAt(threshold(3), 4)]))).rows, [])
      const next = yield* storage.mint(owner, batch([5, 6].map((n) => hitAt(threshold(3), n))))
      assert.deepStrictEqual(digests(next.rows), [["m-4-0", "m-5-0", "m-6-0"]])
    }))

  for (const [title, change] of [
    ["was edited", { putMonitors: [monitor("transfers", {}, { matchRevision: "r2" })] }],
    ["was deleted", { deleteMonitors: ["transfers"] }],
  ] as const) {
    test(`a batch of a monitor that ${title} since tells what it completes, and leaves nothing that counts later`, () =>
      Effect.gen(function* () {
        const { storage, owner } = yield* watched()
        yield* storage.mint(owner, batch([hitAt(threshold(2, 100), 1)]))
        yield* storage.change(change)
        const [gate, window] = [threshold(2, 100), once(100)]
        const hits = [hitAt(gate, 2), hitAt(gate, 3), hitAt(gate, 4)]
        const stale = yield* storage.mint(owner, batch([...hits, hitAt(window, 5, { key: "w" })]))
        assert.deepStrictEqual(digests(stale.rows), [["m-2-0", "m-3-0"], ["m-5-0"]])
        yield* storage.change({ putMonitors: [monitor("transfers")] })
        const next = yield* storage.mint(owner, batch([hitAt(gate, 6), hitAt(window, 7, { key: "w" })]))
        assert.deepStrictEqual(ids(next.rows), ["m-7-0"])
      }))
  }

  test("a monitor that holds very many hits is edited and deleted like any other", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const many = (from: number) => Array.from({ length: 2500 }, (_, i) => hitAt(threshold(2500, 5000), from + i))
      const emission = yield* storage.mint(owner, batch(many(1)))
      assert.lengthOf(emission.rows, 2500)
      yield* storage.mint(owner, batch(many(3001).slice(1)))
      yield* storage.change({ putMonitors: [monitor("transfers", {}, { matchRevision: "r2" })] })
      yield* storage.change({ putMonitors: [monitor("transfers")] })
      assert.deepStrictEqual((yield* storage.mint(owner, batch([hitAt(threshold(2500, 5000), 6000)]))).rows, [])
      yield* storage.mint(owner, batch(many(7001).slice(2)))
      yield* storage.change({ deleteMonitors: ["transfers"] })
      yield* storage.change({ putMonitors: [monitor("transfers")] })
      assert.deepStrictEqual((yield* storage.mint(owner, batch([hitAt(threshold(2500, 5000), 9999)]))).rows, [])
    }))

  test("what gates recorded behind the point is forgotten in bounded steps, and survivors are held again", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const keyed = (key: string, primaries: ReadonlyArray<number>) =>
        primaries.map((n) => hitAt(threshold(21, 100), n, { key, id: `${key}${n}` }))
      const each = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i)
      // The last of 21 members lies behind the point, and so do 15 hits that are held.
      yield* storage.mint(owner, batch([...keyed("a", each(1, 21)), ...keyed("b", each(21, 15))]))
      yield* storage.invalidate(owner, { from: at(20, 9), cause: "reorg" })
      const steps = yield* retractAll(owner, 10)
      // 21 matches, 16 hits and 20 survivors.
      assert.deepStrictEqual(
        steps.map(({ matches, done }) => [matches, done]),
        [
          [10, false],
          [10, false],
          [1, false],
          [0, false],
          [0, false],
          [0, true],
        ],
      )
      assert.deepStrictEqual((yield* storage.mint(owner, batch(keyed("b", each(36, 20))))).rows, [])
      yield* storage.rewind(owner, 1000)
      const next = yield* storage.mint(owner, batch([...keyed("a", [22]), ...keyed("b", [22])]))
      assert.deepStrictEqual(digests(next.rows), [[...each(1, 20), 22].map((n) => `a${n}`)])
    }))

  test("a hit that is found late is folded at its cursor, with what nothing consumed", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const held = [hitAt(threshold(3), 1), hitAt(threshold(3), 9), hitAt(once(), 8, { monitor: "once" })]
      const first = yield* storage.mint(owner, batch(held, { anchors: [{ primary: 4, hash: "four" }] }))
      yield* settleAll(owner, first.rows)
      const found = yield* storage.mintLate(
        owner,
        late([
          { ...hitAt(threshold(3), 4), hash: "four" },
          { ...hitAt(once(), 4, { monitor: "once", id: "o4" }), hash: "four" },
        ]),
      )
      assert.deepStrictEqual(digests(found.rows), [["m-1-0", "m-4-0", "m-9-0"], ["o4"]])
      yield* settleAll(owner, found.rows)
      yield* takeBack(owner, at(8, 5))
      assert.lengthOf(yield* storage.owed("net", "log", all), 3)
    }))

  test("hits are kept while the journal or their window holds them, members as long as the newest", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([hitAt(threshold(2), 1), hitAt(threshold(2, 1000), 2, { monitor: "wide" })]))
      const cut = yield* storage.mint(owner, batch([3, 40].map((n) => hitAt(threshold(2, 100), n, { monitor: "cut" }))))
      yield* settleAll(owner, cut.rows)
      yield* storage.mint(owner, batch([], { upTo: at(45), checkpoint: at(45) }))
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 100 }));
      const next = yield* storage.mint(
        owner,
        batch([
          hitAt(threshold(2), 46, { time: 2 }),
          hitAt(threshold(2, 1000), 46, { id: "w", monitor: "wide" }),
          hitAt(threshold(2, 100), 46, { id: "c", monitor: "cut" }),
        ]),
      )
      assert.deepStrictEqual(digests(next.rows), [["m-2-0", "w"]])
      yield* takeBack(owner, at(39))
      const retracted = (yield* storage.owed("net", "log", all)).filter(({ kind }) => kind === "retracted")
      assert.deepStrictEqual(ids(retracted).toSorted(), ["m-3-0", "m-40-0"])
    }))

  test("pruning looks at no more hits a call than it may, and finds one behind many that stay", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      const wide = Array.from({ length: 35 }, (_, i) => hitAt(threshold(100, 10_000), i + 1, { monitor: "wide" }))
      yield* storage.mint(owner, batch([...wide, hitAt(threshold(2), 36)]))
      yield* storage.mint(owner, batch([hitAt(threshold(100), 80, { monitor: "other" })], { checkpoint: at(80) }))
      let calls = 0
      while (yield* storage.prune(owner, { journalDepth: 10, feedRetention: 1, actionRetention: 0, limit: 10 })) calls++
      assert.isAtLeast(calls, 3)
      const next = yield* storage.mint(owner, batch([hitAt(threshold(2), 81, { time: 36 })]))
      assert.deepStrictEqual(next.rows, [])
    }))

  test("hits go with their network and their monitor", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* watched()
      yield* storage.mint(owner, batch([hitAt(threshold(2), 1)]))
      yield* storage.change({ deleteMonitors: ["transfers"] })
      assert.deepStrictEqual((yield* storage.mint(owner, batch([hitAt(threshold(2), 2)]))).rows, [])
      yield* storage.change({ deleteNetworks: ["net"] })
      yield* storage.change({ putNetworks: [network("net")], putMonitors: [monitor("transfers")] })
      const anew = yield* claim(storage)
      yield* storage.begin(anew, at(0))
      assert.deepStrictEqual((yield* storage.mint(anew, batch([hitAt(threshold(2), 3)]))).rows, [])
    }))
}
