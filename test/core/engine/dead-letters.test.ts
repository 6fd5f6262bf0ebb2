import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Blockwatcher } from "../../../core/engine/blockwatcher.ts"
import { parseDeadLetterId } from "../../../core/engine/dead-letter-id.ts"
import { DeadLetters, type DeadLettersRequest } from "../../../core/engine/dead-letters.ts"
import { encodePayload } from "../../../core/model/sink-event.ts"
import { layerSqlite } from "../../../core/storage/sqlite/layer.ts"
import { Storage } from "../../../core/storage/storage.ts"
import { noReplay } from "../../../core/storage/tuples/dead-letter.ts"
import { lease } from "../storage/builders.ts"

/** A runtime without resources of its own, with the database beneath it. */
const database = () =>
  Layer.flatMap(Layer.fresh(layerSqlite({ path: ":memory:" })), (storage) =>
    Layer.merge(Layer.succeedContext(storage), Blockwatcher.layer({ storage: Layer.succeedContext(storage) })),
  )

const payload = (network: string, id: string, monitor: string) =>
  encodePayload({ id, monitor, network, event: { of: id } })

/**
 * Mints one match a primary, for the sinks `s` and `t` and by turns the monitors `m` and `n`, and lets all their
 * deliveries die: the youngest first.
 */
const die = Effect.fnUntraced(function* (network: string, count: number) {
  const store = yield* Storage
  const owner = yield* store.claim(network, lease())
  yield* store.begin(owner, { primary: 0, secondary: 0 })
  const { rows } = yield* store.mint(owner, {
    upTo: { primary: count, secondary: 1 },
    checkpoint: null,
    anchors: [],
    matches: Array.from({ length: count }, (_, at) => {
      const id = `${network}${at + 1}`
      const monitor = at % 2 === 0 ? "m" : "n"
      const cursor = { primary: at + 1, secondary: 1 }
      return {
        id,
        monitor,
        revision: "r",
        cursor,
        time: null,
        payload: payload(network, id, monitor),
        sinks: ["s", "t"],
      }
    }),
    offer: new Map(),
    durable: new Set(),
    effective: [],
  })
  for (const { seq } of rows.toReversed())
    yield* store.settle(owner, {
      outcomes: [{ seq, state: "dead", attempts: 8, reason: "transient: HTTP 503" }],
      offered: [],
    })
  return rows
})

const list = (request: Partial<DeadLettersRequest> & { readonly network: string }) =>
  DeadLetters.use((letters) => letters.list({ first: 100, after: null, ...request }))

const names = (page: Effect.Success<ReturnType<typeof list>>) =>
  page.items.map(({ node }) => `${node.sink}:${node.matchId}`)

const found = (request: Partial<DeadLettersRequest>) =>
  Effect.map(list({ network: "a", ...request }), (page) => [names(page).toSorted(), page.totalCount])

describe("dead letters", () => {
  it.effect("are listed in the order of dying, with all that a person needs", () =>
    Effect.gen(function* () {
      const rows = yield* die("a", 2)
      const page = yield* list({ network: "a" })
      assert.deepStrictEqual(
        page.items.map(({ node }) => node.seq),
        rows.map(({ seq }) => seq).toReversed(),
      )
      assert.deepStrictEqual([page.totalCount, page.hasNextPage], [4, false])
      const { id, died, createdAt, ...node } = page.items.at(-1)!.node
      assert.deepStrictEqual(node, {
        seq: rows[0]!.seq,
        network: "a",
        sink: rows[0]!.sink,
        monitor: "m",
        matchId: "a1",
        life: 1,
        cursor: { primary: 1, secondary: 1 },
        kind: "match",
        attempts: 8,
        reason: "transient: HTTP 503",
        payload: payload("a", "a1", "m"),
        ended: false,
        // There is no sink of that name.
        replayable: false,
        whyNot: "CONFLICT",
      })
      assert.deepStrictEqual(parseDeadLetterId(id), { network: "a", seq: rows[0]!.seq })
      assert.isTrue(Number.isSafeInteger(died) && Number.isSafeInteger(createdAt))
    }).pipe(Effect.provide(database())),
  )

  it.effect("are paged without a gap or a repeat, also when more die in between", () =>
    Effect.gen(function* () {
      yield* die("a", 5)
      const seen: Array<string> = []
      let after: string | null = null
      for (let more = true; more;) {
        const page: Effect.Success<ReturnType<typeof list>> = yield* list({ network: "a", first: 3, after })
        seen.push(...names(page))
        assert.strictEqual(page.totalCount, 10)
        assert.strictEqual(page.endCursor, page.items.at(-1)!.cursor)
        if (after === null) yield* die("b", 2)
        more = page.hasNextPage
        after = page.endCursor
      }
      assert.deepStrictEqual(seen, names(yield* list({ network: "a" })))
      assert.strictEqual(new Set(seen).size, 10)
      const behind = yield* list({ network: "a", after })
      assert.deepStrictEqual([behind.items, behind.endCursor, behind.hasNextPage], [[], null, false])
      assert.strictEqual((yield* list({ network: "a", first: 10 })).hasNextPage, false)
    }).pipe(Effect.provide(database())),
  )

  it.effect("are listed and counted for the sink and monitor that were asked for", () =>
    Effect.gen(function* () {
      yield* die("a", 3)
      yield* die("b", 1)
      assert.deepStrictEqual(yield* found({ sink: "s" }), [["s:a1", "s:a2", "s:a3"], 3])
      assert.deepStrictEqual(yield* found({ monitor: "n" }), [["s:a2", "t:a2"], 2])
      assert.deepStrictEqual(yield* found({ sink: "t", monitor: "m" }), [["t:a1", "t:a3"], 2])
      assert.deepStrictEqual(yield* found({ network: "b" }), [["s:b1", "t:b1"], 2])
      assert.strictEqual((yield* Effect.flip(list({ network: "c" })))._tag, "NotFound")
      assert.deepStrictEqual(yield* found({ sink: "s", first: 2 }), [["s:a2", "s:a3"], 3])
    }).pipe(Effect.provide(database())),
  )

  it.effect("refuse a cursor that they did not make", () =>
    Effect.gen(function* () {
      yield* die("a", 1)
      const { items } = yield* list({ network: "a" })
      for (const after of [
        "",
        "0",
        "x",
        items[0]!.node.id,
        `${items[0]!.cursor}=`,
        btoa("died:-1"),
        btoa("died:1.5"),
      ]) {
        const error = yield* Effect.flip(list({ network: "a", after }))
        assert.match(error.message, /this is no cursor of the dead letters/)
      }
    }).pipe(Effect.provide(database())),
  )

  it("are replayable unless the match was taken back, it is a retraction, or no payload was kept", () => {
    const row = { kind: "match", ended: false, payload: "{}" } as const
    assert.isNull(noReplay(row))
    assert.strictEqual(noReplay({ ...row, ended: true }), "RETRACTED")
    assert.strictEqual(noReplay({ ...row, payload: null }), "NO_REPLAY_PAYLOAD")
    assert.strictEqual(noReplay({ kind: "retracted", ended: true, payload: null }), "NO_REPLAY_RETRACTED")
  })

  it("have ids that stand for one row and are not taken for anything else", () => {
    const token = (text: string) => btoa(text).replaceAll("=", "")
    for (const id of [
      "",
      "5",
      "c2VxOg",
      token("died:5"),
      token("letter:a:05"),
      token("letter:5"),
      token("letter:a:b:5"),
    ])
      assert.isNull(parseDeadLetterId(id), id)
    assert.deepStrictEqual(parseDeadLetterId(token("letter:a:5")), { network: "a", seq: 5 })
  })
})
