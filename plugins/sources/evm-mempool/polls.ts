import { Effect, Result } from "effect"
import type { RpcFailure } from "../evm-rpc/rpc/errors.ts"
import type { Provider } from "../evm-rpc/rpc/providers.ts"
import { readChanges, readPool, type Told } from "./told.ts"

/** How a node tells what is pending when it is asked: by a filter for news, or by all that is in its pool. */
type Way = { readonly _tag: "Filter"; readonly id: unknown } | { readonly _tag: "Pool" }

const isUnsupported = ({ kind }: RpcFailure): boolean => kind === "unsupported" || kind === "refused"

const askPool = (provider: Provider) =>
  provider.client.call({ method: "txpool_content", params: [] }).pipe(
    Effect.flatMap((answer) => provider.client.read(() => readPool(answer))),
    Effect.catchIf(isUnsupported, ({ reason }) =>
      provider.client.failure(
        "unsupported",
        `the node does not tell what is pending: it offers neither eth_newPendingTransactionFilter nor txpool_content (${reason}); use a node that does, or name a WebSocket in ws_url`,
      ),
    ),
  )

/** Asks nodes what is pending, each in the way that it offers. */
export class Polls {
  readonly #ways = new Map<Provider, Way>()

  /** What came since the node was asked last, or all that is pending. */
  readonly ask = Effect.fnUntraced(function* (
    this: Polls,
    provider: Provider,
  ): Effect.fn.Return<ReadonlyArray<Told>, RpcFailure> {
    const known = this.#ways.get(provider)
    if (known !== undefined) {
      const told = yield* Effect.result(this.#askBy(known, provider))
      if (Result.isSuccess(told)) return told.success
      // A node forgets a filter that nobody asked for a while, and all of them when it starts.
      this.#ways.delete(provider)
      if (!isUnsupported(told.failure)) return yield* told.failure
    }
    const way = yield* this.#open(provider)
    const told = yield* this.#askBy(way, provider)
    this.#ways.set(provider, way)
    return told
  })

  readonly #open = Effect.fnUntraced(function* ({ client }: Provider): Effect.fn.Return<Way, RpcFailure> {
    const filter = yield* Effect.result(client.call({ method: "eth_newPendingTransactionFilter", params: [] }))
    if (Result.isSuccess(filter)) return { _tag: "Filter", id: filter.success }
    if (!isUnsupported(filter.failure)) return yield* filter.failure
    return { _tag: "Pool" }
  })

  #askBy(way: Way, provider: Provider): Effect.Effect<ReadonlyArray<Told>, RpcFailure> {
    const { client } = provider
    return way._tag === "Pool"
      ? askPool(provider)
      : client
          .call({ method: "eth_getFilterChanges", params: [way.id] })
          .pipe(Effect.flatMap((answer) => client.read(() => readChanges(answer))))
  }
}
