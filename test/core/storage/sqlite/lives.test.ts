import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { open } from "../../../../core/storage/sqlite/open.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, match } from "../builders.ts"
import { databaseFiles } from "./files.ts"

const file = databaseFiles()
const everything = { network: "net", kinds: ["match", "retracted"], after: 0, limit: 100 } as const
const all = { afterSeq: 0, limit: 100 }

const seen = (items: ReadonlyArray<{ readonly kind: string; readonly position: number }>) =>
  items.map(({ kind, position }) => `${kind} ${position}`)

/** Storage with matches at 1 to 3, the second of which was taken back at feed position 4. */
const takenBack = Effect.fnUntraced(function* <A, E>(
  name: string,
  body: (
    storage: Storage["Service"],
    owner: { readonly network: string; readonly epoch: number },
  ) => Effect.Effect<A, E>,
) {
  const path = file(name)
  return yield* Storage.use((storage) =>
    Effect.gen(function* () {
      const owner = yield* storage.claim("net")
      yield* storage.begin(owner, at(0))
      yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
      yield* Effect.scoped(
        Effect.map(open(path), ({ native }) => {
          native.exec("UPDATE matches SET ended = 1, ended_position = 4 WHERE id = 'm-2-0'")
          native.exec("UPDATE pipelines SET feed_position = 4")
        }),
      )
      return yield* body(storage, owner)
    }),
  ).pipe(Effect.provide(layerSqlite({ path })))
})

describe("a match that was taken back", () => {
  it.effect("is owed to no one, and an outcome of it changes nothing", () =>
    takenBack("owed.db", (storage, owner) =>
      Effect.gen(function* () {
        const owed = yield* storage.owed("net", "log", all)
        assert.deepStrictEqual(
          owed.map(({ seq }) => seq),
          [1, 3],
        )
        assert.deepStrictEqual(yield* storage.debts({ network: "net" }), { owed: 2, dead: 0 })
        assert.deepStrictEqual(yield* storage.openSlots("net"), [
          { cursor: at(1), rows: 1 },
          { cursor: at(3), rows: 1 },
        ])
        yield* storage.settle(owner, {
          outcomes: [{ seq: 2, state: "dead", attempts: 1, reason: "gone" }],
          offered: [2],
        })
        assert.strictEqual(yield* storage.deadLetterCount({ network: "net" }), 0)
      }),
    ),
  )

  it.effect("stands in the feed with its retraction, and is left out of what is standing", () =>
    takenBack("feed.db", (storage) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(seen(yield* storage.feedPage(everything)), [
          "match 1",
          "match 2",
          "match 3",
          "retracted 4",
        ])
        assert.deepStrictEqual(seen(yield* storage.feedPage({ ...everything, after: 2, limit: 1 })), ["match 3"])
        assert.deepStrictEqual(seen(yield* storage.feedPage({ ...everything, kinds: ["match"], standing: true })), [
          "match 1",
          "match 3",
        ])
        const [retraction] = yield* storage.feedPage({ ...everything, monitor: "transfers", after: 3 })
        assert.deepStrictEqual(retraction, {
          kind: "retracted",
          network: "net",
          position: 4,
          life: 1,
          matchId: "m-2-0",
          monitor: "transfers",
          cursor: at(2),
        })
      }),
    ),
  )

  it.effect("opens its next life when it is found again", () =>
    takenBack("again.db", (storage, owner) =>
      Effect.gen(function* () {
        const again = yield* storage.mint(owner, batch([1, 2, 3].map((n) => match(at(n)))))
        assert.deepStrictEqual(
          again.rows.map(({ matchId, life }) => [matchId, life]),
          [["m-2-0", 2]],
        )
        assert.deepInclude(again, { shown: 1, feedPosition: 5 })
        assert.deepInclude(yield* storage.mint(owner, batch([match(at(2))])), { rows: [], shown: 0 })
      }),
    ),
  )

  it.effect("is pruned with its retraction, and both trims are remembered", () =>
    takenBack("pruned.db", (storage, owner) =>
      Effect.gen(function* () {
        yield* storage.settle(owner, {
          outcomes: [1, 3].map((seq) => ({ seq, state: "delivered", attempts: 1, reason: null })),
          offered: [],
        })
        yield* storage.mint(owner, batch([match(at(30))], { checkpoint: at(30) }))
        const input = { journalDepth: 10, feedRetention: 1, limit: 100 }
        while (yield* storage.prune(owner, input));
        const [state] = yield* storage.feedStates("net")
        assert.sameDeepMembers(
          [...state!.trims],
          [
            { monitor: "transfers", kind: "match", position: 3 },
            { monitor: "transfers", kind: "retracted", position: 4 },
          ],
        )
        assert.lengthOf(yield* storage.feedPage(everything), 1)
      }),
    ),
  )
})
