import { defineEntity, p } from "@mikro-orm/core"
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { at, batch, match } from "../builders.ts"
import { all, started, type Test } from "./support.ts"

const Account = defineEntity({
  name: "Account",
  tableName: "accounts",
  properties: { id: p.text().primary(), balance: p.text(), version: p.integer().version() },
})

const CREATE = `create table accounts (id text not null primary key, balance text not null, version integer not null default 1)`

/** A program with a table of its own, in the storage's database. */
const program = Effect.fnUntraced(function* () {
  const { storage, owner } = yield* started()
  const orm = yield* storage.orm({ entities: [Account] })
  yield* Effect.promise(() => orm.em.getConnection().execute(CREATE))
  return { storage, owner, orm }
})

/** The part of the contract about a program's own MikroORM. */
export const orm = (test: Test): void => {
  test("a program's MikroORM keeps its entities in the same database, with optimistic versions", () =>
    Effect.gen(function* () {
      const { orm: mikro, storage } = yield* program()
      yield* Effect.promise(async () => {
        const em = mikro.em.fork()
        em.create(Account, { id: "a", balance: "115792089237316195423570985008687907853269984665640564039457" })
        await em.flush()
        const [first, second] = [mikro.em.fork(), mikro.em.fork()]
        const [one, other] = [await first.findOneOrFail(Account, "a"), await second.findOneOrFail(Account, "a")]
        one.balance = "1"
        await first.flush()
        other.balance = "2"
        const failed = await second.flush().then(
          () => "flushed",
          (error: unknown) => String(error),
        )
        assert.match(failed, /optimistic lock.* failed/)
        // What failed is rolled back and lets go of its connection.
        assert.strictEqual((await mikro.em.fork().findOneOrFail(Account, "a")).balance, "1")
      })
      assert.deepInclude(yield* storage.pipeline("net"), { network: "net", minted: at(0) })
    }).pipe(Effect.scoped))

  test("neither a program's statements nor those of the runtime run inside the other's transaction", () =>
    Effect.gen(function* () {
      const { orm: mikro, storage, owner } = yield* program()
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const transaction = yield* Effect.forkChild(
        Effect.tryPromise(() =>
          mikro.em.fork().transactional(async (em) => {
            em.create(Account, { id: "lost", balance: "1" })
            await em.flush()
            await Effect.runPromise(Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(goOn)))
            throw new Error("no")
          }),
        ).pipe(Effect.exit),
      )
      yield* Deferred.await(inside)
      const mint = yield* Effect.forkChild(storage.mint(owner, batch([match(at(1))])))
      const other = yield* Effect.forkChild(
        Effect.promise(async () => {
          const em = mikro.em.fork()
          em.create(Account, { id: "kept", balance: "1" })
          await em.flush()
        }),
      )
      yield* Effect.yieldNow
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(transaction)
      yield* Fiber.join(mint)
      yield* Fiber.join(other)
      const accounts = yield* Effect.promise(() => mikro.em.fork().find(Account, {}))
      assert.deepStrictEqual(
        accounts.map(({ id }) => id),
        ["kept"],
      )
      assert.lengthOf(yield* storage.owed("net", "log", all), 1)
    }).pipe(Effect.scoped))

  test("a transaction of a program may be nested, and part of it taken back", () =>
    Effect.gen(function* () {
      const { orm: mikro } = yield* program()
      const ids = yield* Effect.promise(async () => {
        await mikro.em.fork().transactional(async (em) => {
          em.create(Account, { id: "outer", balance: "1" })
          await em.flush()
          const inner = em.transactional(async (nested) => {
            nested.create(Account, { id: "inner", balance: "1" })
            await nested.flush()
            throw new Error("no")
          })
          await inner.catch(() => {})
        })
        return (await mikro.em.fork().find(Account, {})).map(({ id }) => id)
      })
      assert.deepStrictEqual(ids, ["outer"])
    }).pipe(Effect.scoped))

  test("when a program's MikroORM is closed, the storage goes on", () =>
    Effect.gen(function* () {
      const { storage, owner } = yield* started()
      yield* Effect.scoped(storage.orm({ entities: [Account] }))
      yield* storage.mint(owner, batch([match(at(1))]))
      assert.lengthOf(yield* storage.owed("net", "log", all), 1)
    }))
}
