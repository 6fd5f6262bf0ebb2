import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Done } from "../../../examples/exchange/bank/book.ts"
import { SimulatedChain } from "../../../server/devnet/simulated/chain.ts"
import { simulatedNode } from "../../../server/devnet/simulated/node.ts"
import { TOKEN_ADDRESS } from "../../../server/devnet/token.ts"
import type { RunnerOptions } from "../../support/exchange-runner.ts"
import { type Failpoint, news } from "../../support/failpoints.ts"
import { launchNode, type Process, temporaryFolder, waitFor, waitUntil } from "../../support/process.ts"
import { type Choices } from "../seed.ts"
import { makeChainLife } from "./chain-life.ts"
import { judge } from "./oracle.ts"
import type { Database } from "./rows.ts"

const RUNNER = join(import.meta.dirname, "../../support/exchange-runner.ts")
const BANK = join(import.meta.dirname, "../../../examples/exchange/bank/server.ts")

/** Longer than a runner waits before it dies in the middle of a call. */
const LATENCY_MS = 30

const BANK_OPEN = /bank: open (http\S+)/

/** A process of the exchange, and how to get rid of it. */
interface Runner extends Process {
  readonly failpoint: string
  readonly scope: Scope.Closeable
}

/** A bank that is a process of its own, and can be killed: its book stays. */
const startBank = Effect.fnUntraced(function* (folder: string) {
  const parent = yield* Effect.scope
  const launch = Effect.fnUntraced(function* (port: string) {
    const scope = yield* Scope.fork(parent)
    const args = [BANK, "--file", join(folder, "bank.db"), "--port", port, "--latency", `${LATENCY_MS}`]
    const process = yield* Scope.provide(launchNode(args, { cwd: folder, env: {} }), scope)
    yield* process.waitUntil("the bank is open", () => BANK_OPEN.test(process.output.stdout))
    return { process, scope, url: BANK_OPEN.exec(process.output.stdout)![1]! }
  })
  let running = yield* launch("0")
  const { url } = running
  return {
    url,
    done: Effect.promise(async () => (await (await fetch(url)).json()) as Done),
    /** Kills it, and starts it again where it was. */
    restart: Effect.gen(function* () {
      yield* running.process.kill
      yield* Scope.close(running.scope, Exit.void)
      running = yield* launch(new URL(url).port)
    }),
  }
})

/** A chain, a bank, and two processes of the exchange over one database. */
export const setUpExchange = Effect.fnUntraced(function* (database: Database, choices: Choices) {
  const parent = yield* Effect.scope
  const folder = yield* temporaryFolder
  const chain = new SimulatedChain({ chainId: 31_337 })
  const node = yield* simulatedNode(chain)
  const bank = yield* startBank(folder)
  const life = makeChainLife(chain, choices)
  for (let block = 0; block < 6; block++) life.mine()
  const { rows } = database

  const launch = Effect.fnUntraced(function* (name: string) {
    const scope = yield* Scope.fork(parent)
    const failpoint = join(folder, name)
    yield* Effect.promise(() => rm(failpoint, { force: true }))
    const options: RunnerOptions = {
      database: database.url,
      nodes: [node.url],
      token: TOKEN_ADDRESS,
      bank: bank.url,
      failpoint,
    }
    const launched = yield* Scope.provide(
      launchNode(["--conditions=blockwatcher-source", RUNNER, JSON.stringify(options)], { cwd: folder, env: {} }),
      scope,
    )
    return { ...launched, failpoint, scope } satisfies Runner
  })

  const isOpen = (runner: Runner) =>
    runner.waitUntil("the exchange is open", () => runner.output.stdout.includes("exchange: open"))

  // The first one makes the tables.
  const runners = [yield* launch("first")]
  yield* isOpen(runners[0]!)
  runners.push(yield* launch("second"))

  /** Sets a failpoint of a runner; false if it came to its last one meanwhile. */
  const arm = Effect.fnUntraced(function* (runner: Runner, failpoint: Failpoint) {
    yield* Effect.promise(() => writeFile(runner.failpoint, JSON.stringify(failpoint)))
    yield* runner.signal("SIGUSR2")
    const isSet = () => runner.output.stderr.includes(news.set(failpoint))
    yield* waitUntil("its failpoint is set", () => isSet() || runner.hasEnded())
    return isSet()
  })

  const one = (sql: string): Effect.Effect<number> =>
    Effect.map(rows.query(sql), ([row]) => Number(Object.values(row ?? {})[0] ?? -1))

  /** What is left to do. */
  const left = Effect.gen(function* () {
    const checkpoint = yield* one("select checkpoint_primary from pipelines")
    const debts = yield* one("select count(*) from invalidations")
    const open = yield* one("select count(*) from blockwatcher_action_deliveries where state in ('waiting', 'running')")
    return { blocks: chain.head.number - checkpoint, debts, open }
  })

  const idle = waitFor(
    "nothing is left to do",
    left,
    ({ blocks, debts, open }) => blocks <= 0 && debts === 0 && open === 0,
  )

  /** How it looks, for whoever has to find out why it does not go on. */
  const look = Effect.gen(function* () {
    const deliveries = yield* rows.query(
      "select action, state, code, count(*) as count, max(attempts) as attempts from blockwatcher_action_deliveries group by 1, 2, 3",
    )
    const outputs = runners.map(({ output, hasEnded }) => {
      return `${hasEnded() ? "ended" : "runs"}\n${output.stdout.slice(-2_000)}\n${output.stderr.slice(-500)}`
    })
    return [JSON.stringify(yield* left), ...deliveries.map((row) => JSON.stringify(row)), ...outputs].join("\n")
  })

  return {
    chain,
    life,
    look,
    bank,
    runners,
    left,
    /** Waits until both processes are up. */
    open: Effect.suspend(() => Effect.forEach(runners, isOpen, { discard: true })),
    arm,
    /** Starts those that have ended; answers how many. */
    relaunch: Effect.gen(function* () {
      let ended = 0
      for (const [i, runner] of runners.entries()) {
        if (!runner.hasEnded()) continue
        assert.strictEqual(yield* runner.ended, "SIGKILL", runner.output.stderr)
        yield* Scope.close(runner.scope, Exit.void)
        runners[i] = yield* launch(["first", "second"][i]!)
        ended++
      }
      return ended
    }),
    /** Leaves a fork that was heard of, returns to one, and judges what came of everything when nothing is left to do. */
    settled: Effect.gen(function* () {
      for (const act of [life.mine, () => life.reorganise(4), life.flipBack]) {
        act()
        life.outgrow()
        yield* idle
      }
      return yield* judge(chain, rows, bank.done)
    }),
  }
})

export type Exchange = Effect.Success<ReturnType<typeof setUpExchange>>
