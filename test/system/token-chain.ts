import { Effect, type Scope } from "effect"
import { createPublicClient, encodeFunctionData, http, parseAbiItem } from "viem"
import { startAnvil } from "../../server/devnet/anvil.ts"
import { deployToken, TOKEN_ABI, TOKEN_ADDRESS } from "../../server/devnet/token.ts"
import { makeWallet } from "../../server/devnet/wallet.ts"

/** A transfer as the node tells it. */
export interface ChainTransfer {
  readonly block: number
  readonly hash: string
  readonly index: number
  readonly value: bigint
}

/** A real node with a token, whose blocks are mined by the test alone. */
export interface TokenChain {
  readonly url: string
  readonly head: Effect.Effect<number>
  /** Mines one block with a transfer of each of these values. */
  readonly mine: (values: ReadonlyArray<number>) => Effect.Effect<void>
  /** The transfers of the blocks from `from` on, in the chain's order. */
  readonly transfers: (from: number) => Effect.Effect<ReadonlyArray<ChainTransfer>>
}

export const CHAIN_ID = 31_337
export const TRANSFER = "event Transfer(address indexed from, address indexed to, uint256 value)"

/** What the selectors of the tests' monitors look for. */
export const transferSelector = { kind: "event", address: [TOKEN_ADDRESS], event: TRANSFER }

const GAS = "0x186a0"
const event = parseAbiItem(TRANSFER)

interface Call {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

const call = (url: string, calls: ReadonlyArray<Call>): Effect.Effect<void> =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }))),
    })
    const answers = (await response.json()) as ReadonlyArray<{ readonly error?: { readonly message: string } }>
    const failed = answers.find(({ error }) => error !== undefined)
    if (failed !== undefined) throw new Error(failed.error?.message)
  })

/** Starts a node and deploys the token in its first block. */
export const startTokenChain: Effect.Effect<TokenChain, Error, Scope.Scope> = Effect.gen(function* () {
  const { url } = yield* startAnvil({
    port: 0,
    args: ["--chain-id", `${CHAIN_ID}`, "--disable-block-gas-limit"],
  })
  const wallet = makeWallet(url)
  const [deployer, ...holders] = yield* wallet.accounts
  yield* deployToken(wallet, deployer!, holders)
  yield* call(url, [{ method: "evm_setAutomine", params: [false] }])
  const client = createPublicClient({ transport: http(url) })
  const send = (transactions: ReadonlyArray<object>) =>
    call(
      url,
      transactions.map((transaction) => ({ method: "eth_sendTransaction", params: [transaction] })),
    ).pipe(
      Effect.andThen(call(url, [{ method: "evm_mine", params: [] }])),
      // A block that was begun is mined: none appears after whoever made them was told to stop.
      Effect.uninterruptible,
    )
  return {
    url,
    head: Effect.promise(() => client.getBlockNumber({ cacheTime: 0 })).pipe(Effect.map(Number)),
    mine: (values) =>
      send(
        values.map((value, i) => ({
          from: holders[i % holders.length],
          to: TOKEN_ADDRESS,
          gas: GAS,
          data: encodeFunctionData({
            abi: TOKEN_ABI,
            functionName: "transfer",
            args: [holders[(i + 1) % holders.length], BigInt(value)],
          }),
        })),
      ),
    transfers: (from) =>
      Effect.promise(() =>
        client.getLogs({
          event,
          fromBlock: BigInt(from),
          address: TOKEN_ADDRESS,
        }),
      ).pipe(
        Effect.map((logs) =>
          logs.map((log) => ({
            block: Number(log.blockNumber),
            hash: log.blockHash,
            index: log.logIndex,
            value: log.args.value ?? 0n,
          })),
        ),
      ),
  } satisfies TokenChain
})
