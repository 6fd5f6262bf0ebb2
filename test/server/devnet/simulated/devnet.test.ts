import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Logger, Schedule, Scope } from "effect"
import { createPublicClient, decodeEventLog, http } from "viem"
import { type FaultLevel, startSimulatedDevnet } from "../../../../server/devnet/simulated/devnet.ts"
import { TOKEN_ABI, TOKEN_ADDRESS } from "../../../../server/devnet/token.ts"
import { LARGE } from "../../../../server/devnet/traffic.ts"
import { call } from "./call.ts"

/** Starts a quick one; `lines` are what it logs. */
const start = Effect.fnUntraced(function* (faults: FaultLevel) {
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const scope = yield* Scope.make()
  const devnet = yield* startSimulatedDevnet({ faults, seed: 1, blockMs: 5 }).pipe(
    Effect.provide(logger),
    Effect.provideService(Scope.Scope, scope),
  )
  return { ...devnet, lines, stop: Scope.close(scope, Exit.void) }
})

const logged = (lines: ReadonlyArray<string>, ...wanted: ReadonlyArray<RegExp>) =>
  Effect.suspend(() =>
    wanted.every((one) => lines.some((line) => one.test(line))) ? Effect.void : Effect.fail(lines),
  ).pipe(Effect.retry(Schedule.spaced("10 millis")), Effect.timeout("30 seconds"))

describe("a simulated devnet", () => {
  it.live("moves its token, reorganises, is served by three providers, and ends with its scope", () =>
    Effect.gen(function* () {
      const { urls, lines, stop, chainId } = yield* start("none")
      assert.strictEqual(chainId, 31_337)
      yield* logged(lines, /^devnet: blocks? \d+ .*reorganised$/)
      const heads = yield* Effect.forEach(urls, (url) => Effect.promise(() => call(url, "eth_blockNumber")))
      assert.strictEqual(heads.length, 3)
      assert.isAtMost(Number(heads[2].result) - Number(heads[0].result), 20)
      const logs = yield* Effect.promise(() =>
        createPublicClient({ transport: http(urls[1]!) }).getLogs({ address: TOKEN_ADDRESS, fromBlock: 0n }),
      )
      const events = logs.map(({ data, topics }) => {
        const { eventName, args } = decodeEventLog({ abi: TOKEN_ABI, data, topics })
        return { eventName, ...(args as unknown as { from?: string; to?: string; value: bigint }) }
      })
      const transfers = events.filter(({ eventName }) => eventName === "Transfer")
      assert.isTrue(transfers.some(({ from, to, value }) => from !== to && value >= LARGE))
      assert.isTrue(transfers.some(({ from, to, value }) => from !== to && value < LARGE))
      assert.isTrue(transfers.some(({ from, to }) => from === to))
      assert.isTrue(events.some(({ eventName }) => eventName === "Approval"))
      assert.notExists(lines.find((line) => line.includes("provider")))
      yield* stop
      const after = yield* Effect.promise(() => call(urls[0]!, "eth_chainId").catch(({ message }) => message))
      assert.strictEqual(after, "fetch failed")
    }),
  )

  for (const [faults, most] of [
    ["some", 2],
    ["all", 3],
  ] as const)
    it.live(`tells what is wrong with at most ${most} of its providers, and when they are well again`, () =>
      Effect.gen(function* () {
        const { lines, stop } = yield* start(faults)
        yield* logged(
          lines,
          /^devnet: provider \d+ now .+ \([\w-]+\)$/,
          /^devnet: provider \d+ is well again \([\w-]+\)$/,
          most === 2 ? /^devnet: what is wrong now: \d+ [\w-]+, \d+ [\w-]+$/ : /now: \d+ [\w-]+(, \d+ [\w-]+){2}$/,
        )
        if (most === 2) assert.notExists(lines.find((line) => /now: \d+ [\w-]+(, \d+ [\w-]+){2}$/.test(line)))
        yield* stop
      }),
    )
})
