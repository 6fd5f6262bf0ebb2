import { Effect } from "effect"
import type { Abi, Address, Hex } from "viem"
import artifact from "./contract/Token.json" with { type: "json" }
import { DevnetError } from "./error.ts"
import type { Wallet } from "./wallet.ts"

/** Where the token stands: the first contract of the node's first account is always created there. */
export const TOKEN_ADDRESS: Address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"

export const TOKEN_ABI = artifact.abi as Abi

/** What each holder gets, in units of 10^-6. */
const SHARE = 10n ** 18n

/** Deploys the token as the first transaction of a fresh node, divides its supply among the holders, and answers its block. */
export const deployToken = Effect.fnUntraced(function* (
  wallet: Wallet,
  deployer: Address,
  holders: ReadonlyArray<Address>,
) {
  const hash = yield* wallet.attempt((client) =>
    client.deployContract({
      account: deployer,
      abi: TOKEN_ABI,
      bytecode: artifact.bytecode as Hex,
      args: [holders, SHARE],
    }),
  )
  const receipt = yield* wallet.attempt((client) => client.waitForTransactionReceipt({ hash, pollingInterval: 50 }))
  if (receipt.contractAddress?.toLowerCase() !== TOKEN_ADDRESS.toLowerCase()) {
    return yield* new DevnetError({
      reason: `the token was created at ${receipt.contractAddress} and not at ${TOKEN_ADDRESS}; the node was not fresh`,
    })
  }
  return receipt.blockNumber
})
