import { Effect } from "effect"
import type { Chain } from "./chain.ts"
import type { Header } from "./header.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"

/**
 * Asks a provider for the block that it says is its newest one. One that does not have it is left aside, so that a claim
 * from nowhere neither moves what counts as deep nor keeps the run waiting for blocks that nobody has.
 */
export const proveHead = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  by: Provider,
  latest: Header,
): Effect.fn.Return<void, RpcFailure> {
  if (by.health.benched) return // it is left aside already, and a good answer would bring it back
  const { headers } = yield* providers.on(by, () => chain.headersOn(by, [latest.number]))
  if (headers[0]?.hash === latest.hash) return
  const claim = `the node says that its newest block is ${latest.number} (${latest.hash}), and does not have it`
  if (providers.list.length > 1) yield* providers.bench(by, claim)
  return yield* by.client.failure("missing", claim)
})
