import { Effect } from "effect"
import { type Header, readHeader, readHeaderAt } from "./header.ts"
import type { Answer, Call } from "./rpc/client.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider } from "./rpc/providers.ts"
import { toQuantity } from "./wire.ts"

/** The call for a block without its transactions. */
export const blockByNumber = (tag: string | number): Call => ({
  method: "eth_getBlockByNumber",
  params: [typeof tag === "number" ? toQuantity(tag) : tag, false],
})

/** The call for a block with its transactions. */
export const fullBlockByNumber = (number: number): Call => ({
  method: "eth_getBlockByNumber",
  params: [toQuantity(number), true],
})

/** The same for exactly this block. */
export const fullBlockByHash = (hash: string): Call => ({ method: "eth_getBlockByHash", params: [hash, true] })

/** The provider's answers do not belong to one chain; reading again mends it. */
export const changed = (provider: Provider, what: string): RpcFailure =>
  provider.client.failure("missing", `${what}; the chain changed while it was read`)

export const lacks = (provider: Provider, number: number): RpcFailure =>
  provider.client.failure("missing", `the node does not have block ${number}`)

/** The block that was asked for by number; null if the provider does not have it. */
export const headerAt = (
  provider: Provider,
  answer: Answer,
  number: number,
): Effect.Effect<Header | null, RpcFailure> =>
  Effect.flatMap(Effect.fromResult(answer), (block) => provider.client.read(() => readHeaderAt(block, number)))

/** The block that was asked for by a tag; null if the provider does not have it. */
export const headerOfTag = (provider: Provider, answer: Answer): Effect.Effect<Header | null, RpcFailure> =>
  Effect.flatMap(Effect.fromResult(answer), (block) => provider.client.read(() => readHeader(block)))

/** The newest block, which every node has. */
export const latestHeader = Effect.fnUntraced(function* (
  provider: Provider,
  answer: Answer,
): Effect.fn.Return<Header, RpcFailure> {
  const latest = yield* headerOfTag(provider, answer)
  if (latest === null) return yield* provider.client.failure("malformed", "the node has no newest block")
  return latest
})

/** The blocks `from` to `to`, each the parent of the next. */
export const headersInRange = Effect.fnUntraced(function* (
  provider: Provider,
  from: number,
  to: number,
): Effect.fn.Return<ReadonlyArray<Header>, RpcFailure> {
  const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const answers = yield* provider.client.batch(numbers.map(blockByNumber))
  const found: Array<Header> = []
  for (const [i, number] of numbers.entries()) {
    const next = yield* headerAt(provider, answers[i]!, number)
    if (next === null) return yield* lacks(provider, number)
    const previous = found.at(-1)
    if (previous !== undefined && previous.hash !== next.parentHash)
      return yield* changed(provider, `block ${number} does not follow block ${number - 1}`)
    found.push(next)
  }
  return found
})
