import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { NotOwner } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, late, match } from "../builders.ts"
import { all, claim, everything, started, type Test } from "./support.ts"

/** The part of the contract about ownership. */
export const ownership = (test: Test): void => {
  test("each claim has the next epoch and refuses the writes of the claim before it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const next = yield* claim(storage)
      assert.isAbove(next.epoch, owner.epoch)
      const refused = yield* Effect.all(
        [
          storage.begin(owner, at(1)),
          storage.mint(owner, batch([match(at(1))])),
          storage.mintLate(owner, late([])),
          storage.settle(owner, { outcomes: [], offered: [] }),
          storage.checkpoint(owner, at(1)),
          storage.prune(owner, { journalDepth: 1, feedRetention: 1, actionRetention: 0, limit: 10 }),
          storage.renew(owner, 15_000),
          storage.release(owner),
          storage.pause(owner, true),
          storage.invalidate(owner, { from: at(0), cause: "reorg" }),
          storage.retract(owner, 10),
          storage.rewind(owner, 10),
        ].map((write) => Effect.flip(write)),
      )
      assert.deepStrictEqual(
        refused.map((error) => error instanceof NotOwner),
        refused.map(() => true),
      )
      assert.deepStrictEqual(yield* storage.owed("net", "log", all), [])
      assert.deepInclude(yield* storage.pipeline("net"), { minted: at(0), paused: false })
      assert.isNull(yield* storage.invalidation("net"))
    }))

  test("a network that was never claimed has no owner and no pipeline", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      assert.isNull(yield* storage.pipeline("net"))
      const error = yield* Effect.flip(storage.checkpoint({ network: "net", epoch: 1 }, at(1)))
      assert.instanceOf(error, NotOwner)
    }))

  test("one refused write takes none of those with it that wait beside it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const other = yield* started("other")
      const exits = yield* Effect.all(
        [
          Effect.exit(storage.mint(owner, batch([match(at(1))]))),
          Effect.exit(storage.mint({ network: "net", epoch: 99 }, batch([match(at(2))]))),
          Effect.exit(storage.mint(other.owner, batch([match(at(3))]))),
        ],
        { concurrency: "unbounded" },
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true])
      assert.lengthOf(yield* storage.owed("net", "log", all), 1)
      assert.lengthOf(yield* storage.owed("other", "log", all), 1)
    }))

  test("one write that breaks takes none of those with it that wait beside it", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const broken = match(at(2), { payload: null as unknown as string })
      const exits = yield* Effect.all(
        [match(at(1)), broken, match(at(3))].map((one) =>
          Effect.exit(storage.mint(owner, batch([one], { upTo: at(3) }))),
        ),
        { concurrency: "unbounded" },
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true])
      const items = yield* storage.feedPage({ network: "net", ...everything })
      assert.deepStrictEqual(
        items.map(({ matchId, position }) => [matchId, position]),
        [
          ["m-1-0", 1],
          ["m-3-0", 2],
        ],
      )
      const error = yield* Effect.flip(storage.mint(owner, batch([broken])))
      assert.deepInclude(error, { _tag: "StorageError", operation: "mint", retryable: false })
    }))
}
