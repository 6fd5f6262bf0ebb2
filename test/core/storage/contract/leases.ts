import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Held, NotOwner } from "../../../../core/storage/error.ts"
import { Storage } from "../../../../core/storage/storage.ts"
import { at, batch, lease, match } from "../builders.ts"
import { claim, started, type Test } from "./support.ts"

/** The part of the contract about leases. */
export const leases = (test: Test): void => {
  const other = lease("other")

  test("a network is held by its claim until the lease has run out", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      yield* TestClock.setTime(1000)
      const owner = yield* claim(storage)
      const refused = yield* Effect.flip(storage.claim("net", other))
      assert.instanceOf(refused, Held)
      assert.deepInclude(refused, { network: "net", holder: "this" })
      yield* TestClock.adjust(14_999)
      assert.instanceOf(yield* Effect.flip(storage.claim("net", other)), Held)
      yield* TestClock.adjust(1)
      const next = yield* storage.claim("net", other)
      assert.isAbove(next.epoch, owner.epoch)
      assert.deepInclude(yield* Effect.flip(claim(storage)), { holder: "other" })
    }))

  test("a refused claim leaves the owner its network", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* Effect.flip(storage.claim("net", other))
      assert.lengthOf((yield* storage.mint(owner, batch([match(at(1))]))).rows, 1)
      yield* storage.claim("another", other)
    }))

  test("a lease begins anew when it is renewed", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* TestClock.adjust(10_000)
      yield* storage.renew(owner, 20_000)
      yield* TestClock.adjust(19_999)
      assert.instanceOf(yield* Effect.flip(storage.claim("net", other)), Held)
      yield* TestClock.adjust(1)
      yield* storage.claim("net", other)
    }))

  test("a lease that was given back can be claimed at once", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* storage.release(owner)
      const next = yield* storage.claim("net", other)
      assert.isAbove(next.epoch, owner.epoch)
      assert.instanceOf(yield* Effect.flip(storage.release(owner)), NotOwner)
      assert.instanceOf(yield* Effect.flip(storage.renew(owner, 1)), NotOwner)
      assert.instanceOf(yield* Effect.flip(claim(storage)), Held)
    }))

  test("a holder claims its own network again at once", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      const next = yield* claim(storage)
      assert.strictEqual(next.epoch, owner.epoch + 1)
    }))

  test("the lease of a holder that is gone need not be waited for", () =>
    Effect.gen(function* () {
      const { storage } = yield* started()
      const asked: Array<string> = []
      const knowing = (gone: string) =>
        lease("other", {
          isGone: (holder) => {
            asked.push(holder)
            return holder === gone
          },
        })
      assert.instanceOf(yield* Effect.flip(storage.claim("net", knowing("someone"))), Held)
      yield* storage.claim("net", knowing("this"))
      assert.deepStrictEqual([...new Set(asked)], ["this"])
    }))

  test("an owner whose lease ran out goes on until another claims", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* TestClock.adjust(60_000)
      yield* storage.mint(owner, batch([match(at(1))]))
      yield* storage.renew(owner, 15_000)
      assert.instanceOf(yield* Effect.flip(storage.claim("net", other)), Held)
      yield* TestClock.adjust(60_000)
      yield* storage.claim("net", other)
      assert.instanceOf(yield* Effect.flip(storage.renew(owner, 15_000)), NotOwner)
    }))

  test("of two that claim at once one gets the network", () =>
    Effect.gen(function* () {
      const storage = yield* Storage
      const claims = yield* Effect.all(
        ["one", "two", "three"].map((holder) => Effect.result(storage.claim("net", lease(holder)))),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(
        claims.filter(({ _tag }) => _tag === "Success"),
        1,
      )
    }))
}
