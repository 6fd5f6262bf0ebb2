import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import { type Action, Actions, Blockwatcher, EventStore, layerSqlite } from "../../core/index.ts"
import { confirm } from "../../examples/exchange/actions/confirm.ts"
import { credit } from "../../examples/exchange/actions/credit.ts"
import { settle } from "../../examples/exchange/actions/settle.ts"
import { Bank } from "../../examples/exchange/bank/client.ts"
import { resources } from "../../examples/exchange/resources.ts"
import { Account, Entry } from "../../examples/exchange/tables/entities.ts"
import { tables } from "../../examples/exchange/tables/tables.ts"
import evmRpc from "../../plugins/sources/evm-rpc/index.ts"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../server/devnet/simulated/node.ts"
import { HOLDERS, logOf } from "../../server/devnet/simulated/token-logs.ts"
import { TOKEN_ADDRESS } from "../../server/devnet/token.ts"
import { launchNode, temporaryFolder, waitFor } from "../support/process.ts"
import { isSoak } from "../system/seed.ts"

const MAIN = join(import.meta.dirname, "../../examples/exchange/main.ts")

/** How long the bank takes, at least. */
const SLOW_MS = isSoak ? 10_000 : 500

const deposit = (customer: number, value: bigint) =>
  logOf({ kind: "transfer", from: HOLDERS[4]!, to: HOLDERS[customer]!, value })

/** A bank that answers when it may. */
const slowBank = (may: Effect.Effect<void>): Layer.Layer<Bank> => {
  let orders = 0
  const answered = Effect.map(may, () => ++orders)
  return Layer.succeed(Bank, {
    book: () => Effect.map(answered, (receipt) => ({ receipt })),
    sendLetter: () => Effect.map(answered, (number) => ({ number })),
  })
}

/** The exchange in this process, in memory: all has to go through one connection. */
const start = Effect.fnUntraced(function* (actions: ReadonlyArray<Action<unknown, Bank>>, bank: Layer.Layer<Bank>) {
  const chain = new SimulatedChain({ chainId: 31_337 })
  const node = yield* simulatedNode(chain)
  const runtime = yield* Layer.build(
    Blockwatcher.layer({
      storage: layerSqlite({ path: ":memory:" }),
      plugins: [evmRpc],
      resources: resources({ nodes: [node.url], token: TOKEN_ADDRESS, start: 1, confirmations: 0 }),
      actions,
      eventStore: EventStore.layerRuntime(tables),
      // More than ever wait for the bank in a test.
      settings: { actionConcurrency: 100, drainTimeoutMs: 500 },
    }).pipe(Layer.provide(bank)),
  )
  const { orm } = Context.get(runtime, EventStore)
  const { counts } = Context.get(runtime, Actions)
  return {
    chain,
    balance: (customer: string) =>
      Effect.promise(() => orm.em.fork().findOne(Account, customer)).pipe(
        Effect.map((account) => account?.balance ?? 0n),
      ),
    entries: Effect.promise(() => orm.em.fork().findAll(Entry, { orderBy: { id: "asc" } })),
    /** How many deliveries of an action are in a state. */
    count: (action: string, state: string) =>
      Effect.map(counts, (all) =>
        all.filter((one) => one.action === action && one.state === state).reduce((sum, one) => sum + one.deliveries, 0),
      ),
  }
})

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

describe("the exchange of the examples", () => {
  it.live("gives no credit for a deposit whose retraction runs first", () =>
    Effect.gen(function* () {
      const mayCredit = yield* Deferred.make<void>()
      // What tells of the deposit itself fails until it is allowed; what tells of its retraction runs.
      const late: Action<unknown, never> = {
        ...credit,
        retry: { maxAttempts: 10_000, initialBackoffMs: 1, maxBackoffMs: 20 },
        run: (context) =>
          context.event.type === "match"
            ? Effect.flatMap(Deferred.isDone(mayCredit), (may): Effect.Effect<unknown, unknown> =>
                may ? credit.run(context) : Effect.fail("not yet"),
              )
            : credit.run(context),
      }
      const { chain, entries, balance, count } = yield* start([late], slowBank(Effect.void))
      chain.mine(2, [deposit(0, 7n)]).mine(1)
      yield* waitFor("the deposits are told of", count("credit", "waiting"), (waiting) => waiting === 2)
      chain.reorg(2, { length: 3 })
      yield* waitFor("the retraction ran", count("credit", "succeeded"), (succeeded) => succeeded === 1)
      assert.deepStrictEqual(yield* entries, [])
      yield* Deferred.succeed(mayCredit, undefined)
      yield* waitFor("the deposits ran", count("credit", "succeeded"), (succeeded) => succeeded === 3)
      assert.strictEqual(yield* balance("alice"), 7n)
      assert.lengthOf(yield* entries, 1)
    }).pipe(Effect.scoped),
  )

  it.live("credits deposits while the bank does not answer", () =>
    Effect.gen(function* () {
      const mayAnswer = yield* Deferred.make<void>()
      const bank = slowBank(Deferred.await(mayAnswer))
      const { chain, balance, count } = yield* start([credit, settle, confirm], bank)
      chain.mine(1, [deposit(0, 1n)])
      yield* waitFor("the bank is asked", count("settle", "running"), (running) => running === 1)
      yield* waitFor("the bank is asked for the letter", count("confirm", "running"), (running) => running === 1)
      const until = Date.now() + SLOW_MS
      let deposits = 1n
      for (let round = 0; round < 5 || Date.now() < until; round++) {
        chain.mine(1, [deposit(0, 1n)])
        deposits++
        yield* waitFor("it is credited", balance("alice"), (held) => held === deposits)
        yield* Effect.sleep(SLOW_MS / 10)
      }
      assert.strictEqual(yield* count("settle", "succeeded"), 0)
      yield* Deferred.succeed(mayAnswer, undefined)
      yield* waitFor("the bank is done", count("settle", "succeeded"), (booked) => BigInt(booked) === deposits)
      yield* waitFor("letters are sent", count("confirm", "succeeded"), (sent) => BigInt(sent) === deposits)
    }).pipe(Effect.scoped),
  )

  it.live("starts with one command, shows what its customers have, and leaves nothing running", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const program = yield* launchNode(["--conditions=blockwatcher-source", MAIN], { cwd: folder, env: {} })
      yield* program.waitUntil("a balance is shown", () =>
        /alice [\d,]+\.\d{6} \| bob .* letters \| \d+ to do/.test(program.output.stdout),
      )
      const bank = /the bank is at (http\S+),/.exec(program.output.stdout)![1]!
      assert.isTrue(yield* Effect.promise(() => answers(bank)))
      yield* program.stop
      assert.isFalse(yield* Effect.promise(() => answers(bank)))
      assert.strictEqual(program.output.stderr, "")
    }).pipe(Effect.scoped),
  )
})
