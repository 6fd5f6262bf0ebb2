import { Clock, Effect, Random } from "effect"
import type { Address, Hex } from "viem"
import { callOf, movesOf } from "./traffic.ts"
import type { Wallet } from "./wallet.ts"

/** The time between two reorganisations, in ms. */
export interface ReorgPeriod {
  readonly least: number
  readonly most: number
}

/** A transaction of a block that takes the place of another one; the node signs it and counts its nonce. */
interface Call {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
}

/** A call, and which of the new blocks holds it, counted from 0. */
type Placed = readonly [call: Call, offset: number]

// The deepest comes first, so that the first one already takes back a large transfer.
const DEPTHS = [3, 1, 2] as const

const MINUTE = 60

// Methods of the node that viem has no types for.

interface DropAll {
  readonly Parameters?: undefined
  readonly ReturnType: null
}

interface Reorg {
  readonly Parameters: [depth: number, transactions: ReadonlyArray<Placed>]
  readonly ReturnType: null
}

interface SetTime {
  readonly Parameters: [milliseconds: number]
  readonly ReturnType: number
}

/** What the blocks from `first` on held, in their order. */
const callsFrom = Effect.fnUntraced(function* (wallet: Wallet, first: bigint, depth: number) {
  const calls: Array<Placed> = []
  for (let offset = 0; offset < depth; offset++) {
    const { transactions } = yield* wallet.attempt((client) =>
      client.getBlock({ blockNumber: first + BigInt(offset), includeTransactions: true }),
    )
    for (const { from, to, input } of transactions) if (to !== null) calls.push([{ from, to, data: input }, offset])
  }
  return calls
})

/** Replaces the newest blocks by others: about half of their transactions are mined again, and others join them. */
const reorganise = Effect.fnUntraced(function* (
  wallet: Wallet,
  holders: ReadonlyArray<Address>,
  deepest: number,
  above: bigint,
) {
  const head = yield* wallet.attempt((client) => client.getBlockNumber({ cacheTime: 0 }))
  const depth = Math.min(deepest, Number(head - above))
  if (depth < 1) return
  const first = head - BigInt(depth - 1)
  const old = yield* callsFrom(wallet, first, depth)
  const again = yield* Effect.filter(old, () => Random.nextBoolean)
  const others: Array<Placed> = []
  for (let offset = 0; offset < depth; offset++) {
    const moves = yield* movesOf(yield* Random.nextIntBetween(0, MINUTE), holders)
    others.push(...moves.map((move): Placed => [callOf(move), offset]))
  }
  // What waits to be mined was numbered behind transactions that may be gone, and would never fit.
  yield* wallet.attempt((client) => client.request<DropAll>({ method: "anvil_dropAllTransactions" }))
  yield* wallet.attempt((client) =>
    client.request<Reorg>({ method: "anvil_reorg", params: [depth, [...again, ...others]] }),
  )
  // The node's clock went back with the blocks.
  const now = yield* Clock.currentTimeMillis
  yield* wallet.attempt((client) => client.request<SetTime>({ method: "anvil_setTime", params: [now] }))
  const blocks = depth === 1 ? `block ${head} was` : `blocks ${first} to ${head} were`
  yield* Effect.logInfo(`devnet: ${blocks} reorganised; ${again.length} of ${old.length} transactions were mined again`)
})

/**
 * Reorganises the newest one to three blocks now and then, for ever, and none up to `above`. One that fails is logged,
 * and the next one comes in its time.
 */
export const keepReorganising = Effect.fnUntraced(function* (
  wallet: Wallet,
  holders: ReadonlyArray<Address>,
  above: bigint,
  { least, most }: ReorgPeriod,
): Effect.fn.Return<never> {
  for (let count = 0; ; count++) {
    yield* Effect.sleep(yield* Random.nextIntBetween(least, most))
    yield* reorganise(wallet, holders, DEPTHS[count % DEPTHS.length]!, above).pipe(
      Effect.catchTag("DevnetError", ({ message }) => Effect.logWarning(`${message}; the reorganisation is left out`)),
    )
  }
})
