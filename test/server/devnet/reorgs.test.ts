import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Schedule } from "effect"
import { BlockNotFoundError, createPublicClient, http, type PublicClient } from "viem"
import { startAnvil } from "../../../server/devnet/anvil.ts"
import { startDevnetThatReorganises } from "../../../server/devnet/devnet.ts"
import { DevnetError } from "../../../server/devnet/error.ts"
import { keepReorganising } from "../../../server/devnet/reorgs.ts"
import { deployToken, TOKEN_ADDRESS } from "../../../server/devnet/token.ts"
import { makeWallet, type Wallet } from "../../../server/devnet/wallet.ts"

const REORGANISED =
  /^devnet: blocks? (\d+)(?: to (\d+))? w\w+ reorganised; (\d+) of (\d+) transactions were mined again$/

/** Lines as they are logged. */
const capture = () => {
  const lines: Array<string> = []
  return { lines, layer: Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]) }
}

interface SeenBlock {
  readonly hash: string
  readonly parentHash: string
  readonly timestamp: bigint
  readonly transactions: ReadonlyArray<string>
}

type Chain = ReadonlyMap<bigint, SeenBlock>

/** Reads the whole chain; anew if it becomes shorter meanwhile. */
const read = (client: PublicClient) =>
  Effect.tryPromise({
    try: async (): Promise<Chain> => {
      const head = await client.getBlockNumber({ cacheTime: 0 })
      const numbers = Array.from({ length: Number(head) + 1 }, (_, number) => BigInt(number))
      return new Map(
        await Promise.all(
          numbers.map(async (blockNumber) => [blockNumber, await client.getBlock({ blockNumber })] as const),
        ),
      )
    },
    catch: (cause) => cause,
  }).pipe(Effect.retry({ while: (cause) => cause instanceof BlockNotFoundError, times: 20 }), Effect.orDie)

/** Blocks that had another hash whenever it was that they were seen. */
const changedSince = (seen: ReadonlyArray<Chain>, now: Chain): ReadonlyArray<bigint> =>
  [...now].flatMap(([number, { hash }]) =>
    seen.some((chain) => chain.has(number) && chain.get(number)!.hash !== hash) ? [number] : [],
  )

const transfersBehind = (client: PublicClient, block: bigint) =>
  Effect.promise(() => client.getLogs({ address: TOKEN_ADDRESS, fromBlock: 0n })).pipe(
    Effect.map((logs) => logs.filter(({ blockNumber }) => blockNumber > block)),
  )

const headOf = (chain: Chain): bigint => BigInt(chain.size - 1)

/** Looks again and again until what is seen is as wanted. */
const until = <A>(look: Effect.Effect<A>, isRight: (value: A) => boolean) =>
  look.pipe(Effect.filterOrFail(isRight), Effect.retry(Schedule.spaced("50 millis")), Effect.timeout("30 seconds"))

describe("a devnet's reorganisations", () => {
  it.live("replace the newest blocks by others with transfers in them, and the traffic goes on behind them", () => {
    const { lines, layer } = capture()
    const reorgs = () => lines.flatMap((line) => (REORGANISED.test(line) ? [REORGANISED.exec(line)!.slice(1)] : []))
    return Effect.gen(function* () {
      const devnet = yield* startDevnetThatReorganises({ least: 4_000, most: 4_500 })
      const client = createPublicClient({ transport: http(devnet.url) })
      const seen: Array<Chain> = []
      yield* until(
        Effect.map(read(client), (chain) => seen.push(chain)),
        () => reorgs().length > 0,
      )
      const now = yield* read(client)
      const [first, last] = reorgs()[0]!.map(BigInt) as [bigint, bigint]
      assert.strictEqual(last - first, 2n)
      const changed = changedSince(seen, now)
      assert.isAbove(changed.length, 0)
      // One may be mined between the look at the head and the reorganisation.
      assert.isTrue(changed.every((number) => number >= first && number <= last + 1n))
      for (const [number, { parentHash }] of now) {
        if (number > 0n) assert.strictEqual(parentHash, now.get(number - 1n)?.hash)
      }
      const replaced = yield* transfersBehind(client, first - 1n)
      for (const number of [first, first + 1n, last]) {
        assert.isTrue(
          replaced.some(({ blockNumber }) => blockNumber === number),
          `block ${number} holds transfers`,
        )
      }

      yield* until(Effect.sync(reorgs), ({ length }) => length >= 3)
      const depths = reorgs().map(([from, to]) => Number(to ?? from) - Number(from) + 1)
      assert.deepStrictEqual(depths.slice(0, 3), [3, 1, 2])
      const head = headOf(yield* read(client))
      yield* until(
        transfersBehind(client, head),
        (logs) => new Set(logs.map(({ blockNumber }) => blockNumber)).size >= 3,
      )
      const newest = yield* read(client)
      assert.approximately(Number(newest.get(headOf(newest))!.timestamp), Date.now() / 1_000, 5)
    }).pipe(Effect.provide(layer))
  })

  it.live("leave alone what stood before, and go on when one has failed", () => {
    const { lines, layer } = capture()
    return Effect.gen(function* () {
      const { url } = yield* startAnvil({ port: 0, args: [] })
      const wallet = makeWallet(url)
      const [deployer, ...holders] = yield* wallet.accounts
      const deployed = yield* deployToken(wallet, deployer!, holders)
      const client = createPublicClient({ transport: http(url) })
      const firm = yield* read(client)
      let failures = 2
      const flaky: Wallet = {
        ...wallet,
        attempt: (run) => (failures-- > 0 ? new DevnetError({ reason: "it is away" }) : wallet.attempt(run)),
      }
      yield* Effect.forkScoped(keepReorganising(flaky, holders, deployed, { least: 20, most: 30 }))
      yield* until(
        Effect.sync(() => failures),
        (left) => left < -3,
      )
      assert.deepStrictEqual(lines, Array(2).fill("devnet: it is away; the reorganisation is left out"))
      yield* wallet.attempt((node) => node.request<any>({ method: "anvil_mine", params: ["0x1"] }))
      yield* until(
        Effect.sync(() => lines.slice(2)),
        ({ length }) => length > 2,
      )
      for (const line of lines.slice(2)) assert.deepStrictEqual(REORGANISED.exec(line)?.slice(1, 3), ["2", undefined])
      assert.deepStrictEqual(changedSince([firm], yield* read(client)), [])
    }).pipe(Effect.provide(layer))
  })
})
