import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Action, type ActionContext } from "../../../../core/actions/action.ts"
import { Account, Credit, start, type World } from "../program.ts"
import { AT_ONCE, Deposited, type Test } from "./support.ts"

type Context = ActionContext<typeof Deposited>

/** Runs an action once for tenant `a`; answers how it ended, and the accounts after it. */
const runAs = (world: World, tenant: string | undefined, run: (context: Context) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const action = Action.make({ name: "acts", on: Deposited, retry: { ...AT_ONCE, maxAttempts: 1 }, run })
    const { actions, sql } = yield* start(world, [action])
    yield* sql(ROWS)
    yield* sql("insert into credits (id, tenant, amount, account_id) values ('mixed', 'a', '1', 'theirs')")
    const id = yield* actions.emit(Deposited, { id: "x", amount: 1n }, tenant === undefined ? {} : { tenant })
    const find = Effect.map(actions.list({ action: "acts" }), ({ deliveries }) =>
      deliveries.find(({ event, settledAt }) => event === id && settledAt !== null),
    )
    let delivery = yield* find
    while (delivery === undefined) {
      yield* Effect.sleep(5)
      delivery = yield* find
    }
    const accounts = yield* sql("select id, tenant, balance from accounts order by id")
    const credits = yield* sql("select id, tenant, account_id from credits order by id")
    return { delivery, accounts, credits }
  })

const ROWS =
  "insert into accounts (id, tenant, balance) values ('mine', 'a', '1'), ('theirs', 'b', '2'), ('none', null, '3')"

const BEFORE = [
  { id: "mine", tenant: "a", balance: "1" },
  { id: "none", tenant: null, balance: "3" },
  { id: "theirs", tenant: "b", balance: "2" },
]

/** The part of the contract about tenants. */
export const tenants = (test: Test): void => {
  test("an action sees the entities of its event's tenant alone, whatever it asks", (world) =>
    Effect.gen(function* () {
      const seen: Record<string, unknown> = {}
      const { delivery } = yield* runAs(world, "a", ({ em, tenant }) =>
        Effect.promise(async () => {
          const ids = (all: ReadonlyArray<{ readonly id: string }>) => all.map(({ id }) => id)
          seen["tenant"] = tenant
          seen["find"] = ids(await em.find(Account, {}))
          seen["filters off"] = ids(await em.find(Account, {}, { filters: false }))
          seen["by key"] = await em.findOne(Account, "theirs", { filters: false })
          seen["or"] = ids(await em.find(Account, { $or: [{ id: "theirs" }, { id: "mine" }] }, { filters: false }))
          seen["count"] = await em.count(Account, {}, { filters: false })
          seen["count by"] = await em.countBy(Account, "tenant")
          seen["fork"] = ids(await em.fork().find(Account, {}, { filters: false }))
          seen["repository"] = ids(await em.getRepository(Account).findAll({ filters: false }))
          seen["no identity map"] = ids(await em.find(Account, {}, { disableIdentityMap: true, filters: false }))
          const [mixed] = await em.find(Credit, {}, { populate: ["account"], filters: false })
          seen["populated"] = mixed!.account?.balance ?? null
          seen["joined"] = (
            await em.fork().find(Credit, {}, { populate: ["account"], strategy: "joined", filters: false })
          ).map(({ account }) => account?.balance ?? null)
          seen["reference"] = await em.getReference(Account, "theirs", { wrapped: true } as never)
          seen["reference"] = await (seen["reference"] as any).load()
        }),
      )
      assert.deepInclude(delivery, { state: "succeeded", reason: null })
      assert.deepStrictEqual(seen, {
        tenant: "a",
        find: ["mine"],
        "filters off": ["mine"],
        "by key": null,
        or: ["mine"],
        count: 1,
        "count by": { a: 1 },
        fork: ["mine"],
        repository: ["mine"],
        "no identity map": ["mine"],
        populated: null,
        joined: [null],
        reference: null,
      })
    }))

  test("an event of nobody lets its action see everything", (world) =>
    Effect.gen(function* () {
      let seen = 0
      yield* runAs(world, undefined, ({ em, tenant }) =>
        Effect.promise(async () => {
          assert.isNull(tenant)
          seen = await em.count(Account)
        }),
      )
      assert.strictEqual(seen, 3)
    }))

  test("a new entity becomes the tenant's", (world) =>
    Effect.gen(function* () {
      const { delivery, accounts, credits } = yield* runAs(world, "a", ({ em }) =>
        Effect.promise(async () => {
          const account = em.create(Account, { id: "new", balance: "0" })
          em.create(Credit, { id: "new", amount: "1", account })
        }),
      )
      assert.deepInclude(delivery, { state: "succeeded", reason: null })
      assert.deepInclude(accounts, { id: "new", tenant: "a", balance: "0" })
      assert.deepInclude(credits, { id: "new", tenant: "a", account_id: "new" })
    }))

  const writes: Readonly<Record<string, (em: Context["em"]) => Promise<unknown>>> = {
    "creates one of another": async (em) => em.create(Account, { id: "new", tenant: "b", balance: "0" }),
    "gives one to another": async (em) => ((await em.findOneOrFail(Account, "mine")).tenant = "b"),
    "changes one of another by reference": async (em) => {
      em.assign(em.getReference(Account, "theirs"), { balance: "9" })
    },
    "takes one of another by reference": async (em) => {
      em.assign(em.getReference(Account, "theirs"), { tenant: "a" })
    },
    "removes one of another by reference": async (em) => em.remove(em.getReference(Account, "theirs")),
    "changes one of another that it made up": async (em) => {
      const account = em.merge(Account, { id: "theirs", tenant: "a", balance: "0", version: 1 })
      account.balance = "9"
    },
    "refers to one of another": async (em) =>
      em.create(Credit, { id: "new", amount: "1", account: em.getReference(Account, "theirs") }),
  }
  test("an action that writes, removes or refers to what is another tenant's fails, and writes nothing", (world) =>
    Effect.gen(function* () {
      const action = Action.make({
        name: "acts",
        on: Deposited,
        retry: { ...AT_ONCE, maxAttempts: 1 },
        run: ({ event, em }) =>
          Effect.promise(async () => {
            em.create(Account, { id: "with it", balance: "0" })
            await writes[event.payload.id]!(em)
          }),
      })
      const { actions, sql, until } = yield* start(world, [action])
      yield* sql(ROWS)
      for (const [i, what] of Object.keys(writes).entries()) {
        yield* actions.emit(Deposited, { id: what, amount: 1n }, { tenant: "a" })
        const { reason } = yield* until("failed", "acts", i + 1)
        assert.include(reason, 'this action runs for tenant "a"', what)
        assert.deepStrictEqual(yield* sql("select id, tenant, balance from accounts order by id"), BEFORE, what)
      }
      assert.lengthOf(yield* sql("select * from credits"), 0)
    }))

  test("what an action emits is its tenant's", (world) =>
    Effect.gen(function* () {
      const seen: Array<string | null> = []
      const { delivery } = yield* runAs(world, "a", ({ event, emit, tenant }) =>
        Effect.suspend(() => {
          seen.push(tenant)
          return event.payload.id === "x" ? emit(Deposited, { id: "y", amount: 1n }, { tenant: "b" }) : Effect.void
        }),
      )
      assert.strictEqual(delivery.state, "succeeded")
      while (seen.length < 2) yield* Effect.sleep(5)
      assert.deepStrictEqual(seen, ["a", "a"])
    }))
}
