import { Effect, type Scope } from "effect"
import type { Address } from "viem"
import { type Anvil, startAnvil } from "./anvil.ts"
import { DevnetError } from "./error.ts"
import { keepReorganising, type ReorgPeriod } from "./reorgs.ts"
import { deployToken, TOKEN_ADDRESS } from "./token.ts"
import { keepMoving } from "./traffic.ts"
import { makeWallet } from "./wallet.ts"

/** A local chain with a token that keeps moving. */
export interface Devnet extends Anvil {
  readonly chainId: 31337
  readonly token: Address
}

const CHAIN_ID = 31_337 as const
const USUAL_PORT = 8545
const HOLDERS = 5

// States are pruned so that a devnet that runs for days neither grows nor leaves files behind.
const ARGS = ["--chain-id", String(CHAIN_ID), "--block-time", "1", "--prune-history", "1000"]

/** Long enough to look at a match first, and short enough to see it taken back within two minutes. */
const REORG_PERIOD: ReorgPeriod = { least: 60_000, most: 90_000 }

/** Starts a devnet as `startDevnet` does, whose reorganisations come this often. */
export const startDevnetThatReorganises: (period: ReorgPeriod) => Effect.Effect<Devnet, DevnetError, Scope.Scope> =
  Effect.fn("devnet.start")(function* (period) {
    const anvil = yield* startAnvil({ port: USUAL_PORT, args: ARGS }).pipe(
      Effect.catchTag("DevnetError", () => startAnvil({ port: 0, args: ARGS })),
    )
    const wallet = makeWallet(anvil.url)
    const [deployer, ...others] = yield* wallet.accounts
    if (deployer === undefined) return yield* new DevnetError({ reason: "the node has no accounts" })
    const holders = others.slice(0, HOLDERS)
    const deployed = yield* deployToken(wallet, deployer, holders)
    yield* Effect.forkScoped(keepMoving(wallet, holders))
    yield* Effect.forkScoped(keepReorganising(wallet, holders, deployed, period))
    return { ...anvil, chainId: CHAIN_ID, token: TOKEN_ADDRESS } satisfies Devnet
  })

/**
 * Starts a local devnet that ends with the scope: a block a second, a token at a fixed address, transfers and approvals
 * of varied sizes between five accounts, and now and then a reorganisation of the newest blocks. It listens on port 8545
 * of 127.0.0.1, or on a free one where that is taken.
 */
export const startDevnet: Effect.Effect<Devnet, DevnetError, Scope.Scope> = startDevnetThatReorganises(REORG_PERIOD)
