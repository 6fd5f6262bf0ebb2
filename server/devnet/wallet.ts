import { Effect } from "effect"
import {
  type Address,
  createWalletClient,
  http,
  type HttpTransport,
  type PublicActions,
  publicActions,
  type WalletClient,
} from "viem"
import { foundry } from "viem/chains"
import { DevnetError } from "./error.ts"

type Chain = typeof foundry
type Client = WalletClient<HttpTransport, Chain> & PublicActions<HttpTransport, Chain>

const connect = (url: string): Client =>
  createWalletClient({ chain: foundry, transport: http(url, { retryCount: 0 }) }).extend(publicActions)

/** A client of the node, whose accounts are unlocked. */
export interface Wallet {
  readonly attempt: <A>(run: (client: Client) => Promise<A>) => Effect.Effect<A, DevnetError>
  readonly accounts: Effect.Effect<ReadonlyArray<Address>, DevnetError>
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\n")[0] ?? "") : `${error}`

/** Connects to a node; nothing is sent yet. */
export const makeWallet = (url: string): Wallet => {
  const client = connect(url)
  const attempt: Wallet["attempt"] = (run) =>
    Effect.tryPromise({
      try: () => run(client),
      catch: (error) => new DevnetError({ reason: `${url}: ${reasonOf(error)}` }),
    })
  return { attempt, accounts: attempt(({ getAddresses }) => getAddresses()) }
}
