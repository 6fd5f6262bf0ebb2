import { Effect } from "effect"
import type { Chain } from "./chain.ts"
import type { Header } from "./header.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"

/**
 * Asks a provider for the block that it says is its newest one. One that does not have it is left aside, so that a claim
 * from nowhere neither moves what counts as deep nor keeps the run waiting for blocks that nobody has.
 *
 * @param below blocks below that could not be read: the provider must have them as well, if another one can be asked
 */
export const proveHead = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  by: Provider,
  latest: Header,
  below: ReadonlyArray<number> = [],
): Effect.fn.Return<void, RpcFailure> {
  if (by.health.benched) return // it is left aside already, and a good answer would bring it back
  const { headers } = yield* providers.on(by, () => chain.headersOn(by, [latest.number, ...below]))
  const isAlone = providers.list.length === 1
  const says = `the node says that its newest block is ${latest.number} (${latest.hash}), and does not have`
  if (headers[0]?.hash !== latest.hash) {
    if (!isAlone) yield* providers.bench(by, `${says} it`)
    return yield* by.client.failure("missing", `${says} it`)
  }
  const lacking = below.find((_, i) => headers[1 + i] === null)
  if (lacking !== undefined && !isAlone) yield* providers.bench(by, `${says} block ${lacking} below it`)
})
