import { assert } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ActionDeliveryEntity, EventEntity } from "../../../../core/storage/entities/events.ts"
import type { EventTerms } from "../../../../core/storage/events.ts"
import { type Owner, Storage } from "../../../../core/storage/storage.ts"
import { at, batch, hit, late, match, monitor, network } from "../builders.ts"
import { all, claim, everything, retractAll, settleAll, started, takeBack, type Test } from "./support.ts"

const sinks = ["log", "actions"]
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/** A program with two actions, one of which gets the matches of a second monitor alone. */
const terms: EventTerms = {
  actions: new Map([
    ["transfers", ["credit", "notify"]],
    ["mints", ["notify"]],
  ]),
}

/** What stands in the outbox: of each event its id and what it says, with the actions and states of its deliveries. */
const outbox = Effect.gen(function* () {
  const storage = yield* Storage
  const orm = yield* storage.orm({ entities: [EventEntity, ActionDeliveryEntity] })
  const em = orm.em.fork()
  return yield* Effect.promise(async () => {
    const events = await em.find(EventEntity, {}, { orderBy: { seq: "asc" } })
    const deliveries = await em.find(ActionDeliveryEntity, {}, { orderBy: { pk: "asc" } })
    return { events, deliveries }
  })
}).pipe(Effect.scoped)

/** The outbox in words: `<event> → <actions>`. */
const told = Effect.map(outbox, ({ events, deliveries }) =>
  events.map(({ id, seq }) => {
    const actions = deliveries.filter(({ eventSeq }) => eventSeq === seq).map(({ action }) => action)
    return `${id} → ${actions.join(", ")}`
  }),
)

/** Says how every delivery of an action ended. */
const endAll = Effect.fnUntraced(function* (action: string, state: string) {
  const storage = yield* Storage
  const orm = yield* storage.orm({ entities: [ActionDeliveryEntity] })
  const settledAt = state === "parked" ? null : yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  yield* Effect.promise(() => orm.em.fork().nativeUpdate(ActionDeliveryEntity, { action }, { state, settledAt }))
}, Effect.scoped)

const mintTo = Effect.fnUntraced(function* (owner: Owner, ...primaries: ReadonlyArray<number>) {
  const storage = yield* Storage
  return yield* storage.mint(
    owner,
    batch(
      primaries.map((n) => match(at(n), { sinks })),
      { ...terms, traceparent: TRACE },
    ),
  )
})

/** The part of the contract about the events of actions. */
export const actions = (test: Test): void => {
  test("a match for the sink actions is stored as delivered, with its event and a delivery to each subscribed action", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const minted = yield* mintTo(owner, 1, 2)
      assert.deepStrictEqual(
        minted.rows.map(({ sink, slot }) => [sink, slot]),
        [
          ["log", true],
          ["log", true],
        ],
      )
      assert.deepStrictEqual(yield* storage.owedSinks("net"), ["log"])
      assert.deepStrictEqual(yield* storage.openSlots("net"), [
        { cursor: at(1), rows: 1 },
        { cursor: at(2), rows: 1 },
      ])
      assert.lengthOf(yield* storage.feedPage({ network: "net", ...everything }), 2)
      const { events, deliveries } = yield* outbox
      assert.deepInclude(events[0], {
        id: "m-1-0",
        type: "match:transfers",
        version: 1,
        encoding: 1,
        payload: null,
        tenant: null,
        traceparent: TRACE,
        depth: 0,
        createdAt: 0,
        matchId: "m-1-0",
        life: 1,
        kind: "match",
        network: "net",
        primaryPos: 1,
        emission: null,
      })
      assert.deepStrictEqual(
        deliveries.map(({ eventSeq, action, matchId, state, attempts, due }) => [
          eventSeq === events[0]!.seq ? 1 : 2,
          action,
          matchId,
          state,
          attempts,
          due,
        ]),
        [
          [1, "credit", "m-1-0", "waiting", 0, 0],
          [1, "notify", "m-1-0", "waiting", 0, 0],
          [2, "credit", "m-2-0", "waiting", 0, 0],
          [2, "notify", "m-2-0", "waiting", 0, 0],
        ],
      )
      assert.deepStrictEqual(yield* storage.matchState("m-1-0"), { canonical: true, life: 1 })
      assert.isNull(yield* storage.matchState("m-3-0"))
      // What stands is neither written nor told again; what nobody is subscribed to is told to nobody.
      yield* mintTo(owner, 2)
      const others = [match(at(3), { sinks, monitor: "burns" }), match(at(4), { sinks: ["actions"], monitor: "mints" })]
      yield* storage.mint(owner, batch([...others, match(at(5))], terms))
      assert.deepStrictEqual((yield* told).slice(2), ["m-3-0 → ", "m-4-0 → notify"])
    }))

  test("without actions the sink of that name is one like any other", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const { rows } = yield* storage.mint(owner, batch([match(at(1), { sinks: ["actions"] })]))
      assert.deepInclude(rows[0], { sink: "actions", state: "pending", slot: true })
      yield* settleAll(owner, rows)
      yield* takeBack(owner, at(0))
      assert.lengthOf(yield* storage.owed("net", "actions", all), 1)
      assert.deepStrictEqual(yield* told, [])
    }))

  test("a late find is told to actions", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([], { upTo: at(9), anchors: [{ primary: 3, hash: "three" }] }))
      const found = [3, 4].map((n) => ({ ...match(at(n), { sinks }), hash: "three" }))
      const { rows } = yield* storage.mintLate(owner, late(found, terms))
      assert.lengthOf(rows, 1)
      assert.deepStrictEqual(yield* told, ["m-3-0 → credit, notify"])
    }))

  test("the members of a gate's emission are told to actions one by one, with what they have in common", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.change({ putNetworks: [network("net")], putMonitors: [monitor("transfers")] })
      const gate = { type: "threshold", count: 2, windowMs: 10, by: null } as const
      const hits = [1, 2].map((n) => hit(at(n), gate, { time: n, sinks: ["actions"] }))
      const first = yield* storage.mint(owner, batch(hits.slice(0, 1), terms))
      const second = yield* storage.mint(owner, batch(hits.slice(1), terms))
      assert.deepStrictEqual([first.rows, second.rows, second.shown], [[], [], 2])
      assert.deepStrictEqual(yield* told, ["m-1-0 → credit, notify", "m-2-0 → credit, notify"])
      const { events } = yield* outbox
      const items = yield* storage.feedPage({ network: "net", ...everything })
      const emissions = new Set([
        ...events.map(({ emission }) => emission),
        ...items.map((item) => item.kind === "match" && item.emission),
      ])
      assert.strictEqual(emissions.size, 1)
      assert.isFalse(emissions.has(null))
      assert.deepStrictEqual(
        events.map(({ primaryPos }) => primaryPos),
        [2, 2],
      )
      // The rest of an emission that is cut is taken back with it.
      yield* storage.invalidate(owner, { from: at(1, 5), cause: "reorg" })
      yield* retractAllTo(owner)
      assert.sameMembers((yield* told).slice(2), ["m-1-0-r → credit, notify", "m-2-0-r → credit, notify"])
    }))

  test("what the chain takes back is told to the actions that got it, and each life in its turn", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* mintTo(owner, 1, 2, 3)
      const back = Effect.fnUntraced(function* () {
        yield* settleAll(owner, yield* storage.owed("net", "log", all))
        yield* storage.invalidate(owner, { from: at(2), cause: "reorg" })
        yield* retractAllTo(owner)
        assert.deepStrictEqual(yield* storage.owedSinks("net"), ["log"])
        yield* settleAll(owner, yield* storage.owed("net", "log", all))
        yield* storage.rewind(owner, 1000)
      })
      yield* back()
      assert.deepStrictEqual((yield* told).slice(3), ["m-3-0-r → credit, notify"])
      const { events } = yield* outbox
      assert.deepInclude(events[3], {
        type: "match:transfers",
        kind: "retracted",
        life: 1,
        traceparent: TRACE,
        depth: 0,
      })
      assert.strictEqual(events[3]!.matchPk, events[2]!.matchPk)
      assert.deepStrictEqual(yield* storage.matchState("m-3-0"), { canonical: false, life: 1 })
      assert.deepStrictEqual(yield* storage.matchState("m-2-0"), { canonical: true, life: 1 })
      // It comes again while another set of actions is subscribed.
      const now = { actions: new Map([["transfers", ["audit"]]]) }
      yield* storage.mint(owner, batch([match(at(3), { sinks })], now))
      assert.deepStrictEqual(yield* storage.matchState("m-3-0"), { canonical: true, life: 2 })
      yield* back()
      assert.deepStrictEqual((yield* told).slice(4), ["m-3-0-2 → audit", "m-3-0-2-r → audit"])
      assert.deepStrictEqual(yield* storage.matchState("m-3-0"), { canonical: false, life: 2 })
    }))

  test("a predicate that failed is a dead letter, an event when it is replayed, and taken back only then", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const failure = "permanent: predicate: no such field"
      const failed = [1, 2, 3].map((n) => match(at(n), { sinks: ["actions"], failure }))
      yield* storage.mint(owner, batch(failed, terms))
      assert.deepStrictEqual(yield* told, [])
      const letters = yield* storage.deadLetters({ network: "net" }, { after: 0, limit: 10 })
      assert.deepStrictEqual(
        letters.map(({ sink, reason }) => [sink, reason]),
        failed.map(() => ["actions", failure]),
      )
      const replay = (n: number) => {
        const { seq } = letters[n]!
        return storage.replayed(owner, { seq, state: "delivered", attempts: 0, reason: null }, terms)
      }
      assert.isTrue(yield* replay(0))
      assert.isFalse(yield* replay(0))
      assert.deepStrictEqual(yield* told, ["m-1-0 → credit, notify"])
      assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 2)
      yield* storage.invalidate(owner, { from: at(0), cause: "reorg" })
      yield* retractAllTo(owner)
      assert.deepStrictEqual((yield* told).slice(1), ["m-1-0-r → credit, notify"])
      assert.deepStrictEqual(yield* storage.owedSinks("net"), [])
      // Its match ended, so that nobody must hear of it any more.
      assert.isFalse(yield* replay(1))
      assert.lengthOf(yield* told, 2)
    }))

  test("what was owed to the sink while no program with actions ran becomes events, some rows at a time", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.mint(owner, batch([match(at(1), { sinks }), match(at(2), { sinks: ["actions"] })]))
      yield* mintTo(owner, 3)
      yield* storage.invalidate(owner, { from: at(2), cause: "reorg" })
      yield* retractAll(owner)
      assert.lengthOf(yield* storage.owed("net", "actions", all), 3)
      assert.strictEqual(yield* storage.emitOwed(owner, terms, 2), 2)
      assert.strictEqual(yield* storage.emitOwed(owner, terms, 2), 1)
      assert.strictEqual(yield* storage.emitOwed(owner, terms, 2), 0)
      assert.deepStrictEqual(yield* told, [
        "m-3-0 → credit, notify",
        "m-1-0 → credit, notify",
        "m-2-0 → credit, notify",
        "m-3-0-r → credit, notify",
      ])
      assert.deepStrictEqual(yield* storage.owedSinks("net"), ["log"])
      assert.deepStrictEqual(yield* storage.openSlots("net"), [{ cursor: at(1), rows: 1 }])
    }))

  test("tells whoever listens that events were written, when they are, and not of other writes", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const signals = yield* Queue.unbounded<void>()
      const listening = yield* Effect.forkChild(
        Stream.runForEach(storage.newEvents, () => Queue.offer(signals, undefined)),
        { startImmediately: true },
      )
      yield* storage.mint(owner, batch([match(at(1))], terms))
      yield* Effect.yieldNow
      assert.strictEqual(yield* Queue.size(signals), 0)
      yield* mintTo(owner, 2)
      yield* Queue.take(signals)
      yield* storage.invalidate(owner, { from: at(1), cause: "reorg" })
      yield* retractAllTo(owner)
      yield* Queue.take(signals)
      yield* Fiber.interrupt(listening)
    }))

  const retention = 1000

  /** Prunes all that may go; answers what is left of the outbox, and whether the match at primary 1 is. */
  const prune = Effect.fnUntraced(function* (owner: Owner) {
    const storage = yield* Storage
    const kept = { journalDepth: 10, feedRetention: 0, actionRetention: retention, limit: 100 }
    while (yield* storage.prune(owner, kept)) yield* Effect.yieldNow
    return { told: yield* told, state: yield* storage.matchState("m-1-0") }
  })

  test("an event is kept with its match until all its deliveries have been over for as long as they are kept", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* mintTo(owner, 1, 2, 3, 4, 5)
      yield* settleAll(owner, yield* storage.owed("net", "log", all))
      const far = at(100)
      yield* storage.mint(owner, batch([match(far, { sinks })], { ...terms, upTo: far, checkpoint: far }))
      yield* settleAll(owner, yield* storage.owed("net", "log", all))
      yield* storage.checkpoint(owner, far)
      yield* TestClock.adjust(retention + 1)
      yield* endAll("credit", "succeeded")
      yield* endAll("notify", "parked")
      assert.lengthOf((yield* prune(owner)).told, 6)
      yield* TestClock.adjust(retention + 1)
      const parked = yield* prune(owner)
      assert.lengthOf(parked.told, 6)
      assert.deepStrictEqual(parked.state, { canonical: true, life: 1 })
      yield* endAll("notify", "failed")
      assert.lengthOf((yield* prune(owner)).told, 6)
      yield* TestClock.adjust(retention + 1)
      // What may be taken back yet is kept.
      assert.deepStrictEqual(yield* prune(owner), { told: ["m-100-0 → credit, notify"], state: null })
      assert.lengthOf((yield* outbox).deliveries, 2)
      // Numbers are not given out twice, though the rows are gone.
      yield* claim(storage, "other")
      const { events } = yield* outbox
      assert.isAbove(events[0]!.seq, 5)
    }))

  test("what a network, a monitor or the sink still has to tell actions counts when it is deleted, and goes with it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* claim(storage, "other")
      yield* storage.begin(other, at(0))
      yield* mintTo(owner, 1, 2)
      yield* storage.mint(owner, batch([match(at(3), { sinks: ["actions"], monitor: "mints" })], terms))
      yield* storage.mint(other, batch([match(at(1), { id: "o", sinks: ["actions"] })], terms))
      const open = (by: Parameters<typeof storage.debts>[0]) => Effect.map(storage.debts(by), (debts) => debts.actions)
      assert.deepStrictEqual(
        yield* Effect.all([
          open({ network: "net" }),
          open({ network: "other" }),
          open({ monitor: "transfers" }),
          open({ network: "net", monitor: "mints" }),
          open({ sink: "actions" }),
          open({ sink: "log" }),
        ]),
        [5, 2, 6, 1, 7, 0],
      )
      yield* storage.invalidate(owner, { from: at(1), cause: "reorg" })
      yield* retractAllTo(owner)
      yield* storage.change({ deleteMonitors: ["transfers"], discard: [{ monitor: "transfers" }] })
      const states = Effect.map(outbox, ({ events, deliveries }) =>
        deliveries.map(({ eventSeq, state }) => `${events.find(({ seq }) => seq === eventSeq)!.id} ${state}`),
      )
      // Retractions are for those who heard of the match, whatever becomes of the monitor.
      assert.deepStrictEqual(yield* states, [
        "m-1-0 cancelled",
        "m-1-0 cancelled",
        "m-2-0 cancelled",
        "m-2-0 cancelled",
        "m-3-0 waiting",
        "o cancelled",
        "o cancelled",
        "m-2-0-r waiting",
        "m-2-0-r waiting",
        "m-3-0-r waiting",
      ])
      yield* storage.change({ discard: [{ sink: "actions" }] })
      assert.strictEqual(yield* open({ network: "net" }), 0)
      yield* storage.change({ deleteNetworks: ["net"] })
      assert.deepStrictEqual(yield* told, ["o → credit, notify"])
      assert.isNull(yield* storage.matchState("m-1-0"))
    }))
}

/** Ends all matches that are to be taken back, in a program with actions. */
const retractAllTo = Effect.fnUntraced(function* (owner: Owner) {
  const storage = yield* Storage
  while (!(yield* storage.retract(owner, 2, terms)).done) yield* Effect.yieldNow
})
