import { Clock, Effect, Result } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { RpcFailure } from "../evm-rpc/rpc/errors.ts"
import type { Provider, Providers } from "../evm-rpc/rpc/providers.ts"
import { MalformedAnswer, readHash, readObject } from "../evm-rpc/wire.ts"
import { type PendingTransaction, readPending } from "./pending.ts"
import type { Recent } from "../evm-rpc/recent.ts"

/** Looks for pending transactions that were not seen before. */
export interface PendingFeed {
  readonly next: Effect.Effect<ReadonlyArray<PendingTransaction>, RpcFailure | SourceRefused>
}

/** How a node tells what is pending: by a filter that is asked for news, or by all that is in its pool. */
type Way = { readonly _tag: "Filter"; readonly id: unknown } | { readonly _tag: "Pool" }

/** What a node says of a transaction: its hash, or all of it. */
type Told = string | PendingTransaction

/** How long a node is asked again for a transaction that it told of and does not know, in ms. */
const PATIENCE_MS = 10_000

const hashOf = (told: Told): string => (typeof told === "string" ? told : told.hash)

const readTold = (answer: unknown): ReadonlyArray<Told> => {
  if (!Array.isArray(answer))
    throw new MalformedAnswer("the changes of a filter should be a list, but are something else")
  return answer.map((one) => (typeof one === "string" ? readHash(one, "the hash of a transaction") : readPending(one)))
}

/** The transactions of a pool that can be mined next, by sender and nonce. */
const readPool = (answer: unknown): ReadonlyArray<PendingTransaction> =>
  Object.values(readObject(readObject(answer, "the pool")["pending"] ?? {}, "the pending part of the pool")).flatMap(
    (ofSender) => Object.values(readObject(ofSender, "the transactions of a sender")).map(readPending),
  )

const isUnsupported = ({ kind }: RpcFailure): boolean => kind === "unsupported" || kind === "refused"

const askPool = (provider: Provider) =>
  provider.client.call({ method: "txpool_content", params: [] }).pipe(
    Effect.flatMap((answer) => provider.client.read(() => readPool(answer))),
    Effect.catchIf(isUnsupported, ({ reason }) =>
      provider.client.failure(
        "unsupported",
        `the node does not tell what is pending: it offers neither eth_newPendingTransactionFilter nor txpool_content (${reason}); use a node that does`,
      ),
    ),
  )

/** Asks the nodes in order of health; each in the way that it offers. `seen` holds the hashes that are not news. */
export const makePendingFeed = (providers: Providers, seen: Recent): PendingFeed => {
  const ways = new Map<Provider, Way>()
  /** Hashes whose transactions are to be fetched, with the time since when, in ms since 1970. */
  const waiting = new Map<string, number>()
  /** Transactions that no call of `next` has answered yet: one that fails in the middle loses nothing. */
  const fresh = new Map<string, PendingTransaction>()

  const openWay = Effect.fnUntraced(function* (provider: Provider): Effect.fn.Return<Way, RpcFailure> {
    const filter = yield* Effect.result(provider.client.call({ method: "eth_newPendingTransactionFilter", params: [] }))
    if (Result.isSuccess(filter)) return { _tag: "Filter", id: filter.success }
    if (!isUnsupported(filter.failure)) return yield* filter.failure
    return { _tag: "Pool" }
  })

  const askWay = (provider: Provider, way: Way): Effect.Effect<ReadonlyArray<Told>, RpcFailure> =>
    way._tag === "Pool"
      ? askPool(provider)
      : provider.client
          .call({ method: "eth_getFilterChanges", params: [way.id] })
          .pipe(Effect.flatMap((answer) => provider.client.read(() => readTold(answer))))

  const ask = Effect.fnUntraced(function* (provider: Provider): Effect.fn.Return<ReadonlyArray<Told>, RpcFailure> {
    const known = ways.get(provider)
    if (known !== undefined) {
      const told = yield* Effect.result(askWay(provider, known))
      if (Result.isSuccess(told)) return told.success
      // A node forgets a filter that nobody asked for a while, and all of them when it starts.
      ways.delete(provider)
      if (!isUnsupported(told.failure)) return yield* told.failure
    }
    const way = yield* openWay(provider)
    const told = yield* askWay(provider, way)
    ways.set(provider, way)
    return told
  })

  /** Asks for the transactions of which only the hash was told. */
  const fetchWaiting = Effect.fnUntraced(function* ({ client }: Provider): Effect.fn.Return<void, RpcFailure> {
    const hashes = [...waiting.keys()]
    const answers = yield* client.batch(hashes.map((hash) => ({ method: "eth_getTransactionByHash", params: [hash] })))
    const now = yield* Clock.currentTimeMillis
    for (const [i, hash] of hashes.entries()) {
      const answer = yield* Effect.fromResult(answers[i]!)
      if (answer !== null) fresh.set(hash, yield* client.read(() => readPending(answer)))
      if (answer !== null || now - waiting.get(hash)! > PATIENCE_MS) waiting.delete(hash)
    }
  })

  const next = providers.use(
    Effect.fnUntraced(function* (provider) {
      const now = yield* Clock.currentTimeMillis
      for (const told of yield* ask(provider)) {
        const hash = hashOf(told)
        if (seen.has(hash)) continue
        if (typeof told !== "string") fresh.set(hash, told)
        else if (!waiting.has(hash)) waiting.set(hash, now)
      }
      if (waiting.size > 0) yield* fetchWaiting(provider)
      const found = [...fresh.values()]
      fresh.clear()
      for (const { hash } of found) seen.add(hash)
      return found
    }),
  )

  return { next }
}
