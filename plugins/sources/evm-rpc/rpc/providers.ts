import { Clock, Effect, Metric, Option, Result, type Scope } from "effect"
import { SourceRefused, SourceUnavailable, type SourceError } from "../../../../core/plugin/error.ts"
import { readQuantity } from "../wire.ts"
import type { RpcClient } from "./client.ts"
import { RpcFailure } from "./errors.ts"
import { afterFailure, afterSuccess, type Health, healthy, inOrderOfHealth, isTrouble } from "./health.ts"
import { initialRange, type RangeSize } from "./range.ts"

/** A node with what was learned about it. */
export interface Provider {
  readonly client: RpcClient
  health: Health
  range: RangeSize
  /** It does not have blocks below. */
  lowest: number
  /** The chain that it serves; null until it was asked. */
  chainId: number | null
  /** Whether it answers `eth_getLogs` by block hash. */
  logsByHash: boolean
  /** Whether it answers `eth_getBlockReceipts`: once it did, a refusal is of that one request. */
  blockReceipts: "unknown" | "answers" | "lacks"
  /** Whether it answers for the tags that `confirmations` needs. */
  knowsTags: boolean
  /** The newest block that it told; -1 until it did. */
  head: number
  /** Left aside because it was behind others: it is preferred again when it has caught up with them. */
  behind: boolean
}

export interface Choice {
  /** Asked last: they gave the answer that is in doubt. */
  readonly avoid?: ReadonlySet<Provider>
  /** The lowest block that is asked for. */
  readonly from?: number
  /** Whether those that know the tags are asked first. */
  readonly tags?: boolean
}

/** The nodes of a network, tried in order of health. */
export interface Providers {
  readonly list: ReadonlyArray<Provider>
  /** Runs `ask` on one provider after the other until one succeeds; fails with all reasons, if none does. */
  readonly use: <A>(
    ask: (provider: Provider) => Effect.Effect<A, RpcFailure>,
    choice?: Choice,
  ) => Effect.Effect<A, RpcFailure | SourceRefused>
  /** Runs `ask` on this provider. */
  readonly on: <A>(
    provider: Provider,
    ask: (provider: Provider) => Effect.Effect<A, RpcFailure>,
  ) => Effect.Effect<A, RpcFailure>
  /** Leaves the provider aside for a while, for what it answered; one that is `behind` also until it has caught up. */
  readonly bench: (provider: Provider, reason: string, behind?: boolean) => Effect.Effect<void>
  /** The one that would be asked now. */
  readonly preferred: Effect.Effect<Provider>
  /** Those that are well and known to serve the chain, in the order in which `use` would ask them. */
  readonly ready: (choice: Choice) => ReadonlyArray<Provider>
  /** Asks anew for the chain that is served; succeeds with the first provider of the right one. */
  readonly verify: Effect.Effect<void, SourceError>
}

const PROBE_TIMEOUT = "5 seconds"

/** Blocks by which a provider may be behind and count as one that has caught up. */
const CAUGHT_UP_BLOCKS = 1

const heads = Metric.gauge("blockwatcher_rpc_node_head", { description: "The newest block that a node told" })

const leftAside = Metric.counter("blockwatcher_rpc_nodes_left_aside_total", {
  description:
    "Times that a node was left aside for what it answered: it stood still, was behind, or contradicted others",
  incremental: true,
})

/** Takes note of the newest block that a provider told. */
export const noteHead = (provider: Provider, head: number): Effect.Effect<void> => {
  provider.head = head
  return Metric.update(Metric.withAttributes(heads, { node: provider.client.label }), head)
}

/** Those that `wanted` holds for before the others. */
const first = (
  providers: ReadonlyArray<Provider>,
  wanted: (provider: Provider) => boolean,
): ReadonlyArray<Provider> => [...providers.filter(wanted), ...providers.filter((provider) => !wanted(provider))]
/** It is probed as if it were away, but every 8 s at least: who moved a node to another chain may move it back. */
const afterWrongChain = (health: Health, now: number): Health =>
  afterFailure({ ...health, failures: Math.min(health.failures, 3) }, now)

/** Makes the providers of a chain; probes of benched ones run in the scope. */
export const makeProviders = Effect.fnUntraced(function* (
  clients: ReadonlyArray<RpcClient>,
  chainId: number,
  maxRange: number,
): Effect.fn.Return<Providers, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const list = clients.map((client): Provider => ({
    client,
    health: healthy,
    range: initialRange(maxRange),
    lowest: 0,
    chainId: null,
    logsByHash: true,
    blockReceipts: "unknown",
    knowsTags: true,
    head: -1,
    behind: false,
  }))
  const probing = new Set<Provider>()
  /** Whether any of them was seen to serve the chain. */
  let isServed = false

  const wrongChain = (provider: Provider): RpcFailure =>
    provider.client.failure(
      "wrong-chain",
      `the node serves chain ${provider.chainId}, but chain_id is ${chainId}; correct chain_id or the URL`,
    )

  const askChain = Effect.fnUntraced(function* (provider: Provider) {
    const before = provider.chainId
    const answer = yield* provider.client.call({ method: "eth_chainId", params: [] })
    provider.chainId = yield* provider.client.read(() => readQuantity(answer, "the chain id"))
    if (provider.chainId === chainId) {
      isServed = true
      return
    }
    provider.health = afterWrongChain(provider.health, yield* Clock.currentTimeMillis)
    if (before !== provider.chainId) yield* Effect.logError(`left out: ${wrongChain(provider).reason}`)
  })

  const note = Effect.fnUntraced(function* (provider: Provider, failure: RpcFailure) {
    if (failure.lowest !== undefined) provider.lowest = Math.max(provider.lowest, failure.lowest)
    if (!isTrouble(failure.kind)) return
    if (failure.kind === "unreachable") provider.chainId = null // another node may answer there next time
    const now = yield* Clock.currentTimeMillis
    provider.health = afterFailure(provider.health, now, failure.retryAfterMs)
    if (list.length > 1) yield* Effect.logDebug(`leaving a node aside: ${failure.reason}`)
  })

  const on: Providers["on"] = Effect.fnUntraced(function* (provider, ask) {
    const asked = Effect.gen(function* () {
      if (provider.chainId === null) yield* askChain(provider)
      if (provider.chainId !== chainId) return yield* wrongChain(provider)
      return yield* ask(provider)
    })
    const { benchedUntil } = provider.health
    yield* Effect.annotateCurrentSpan("blockwatcher.rpc.node", provider.client.label)
    const result = yield* Effect.result(asked)
    if (Result.isFailure(result)) {
      yield* note(provider, result.failure)
      return yield* result.failure
    }
    // An answer to what was asked before it was left aside does not bring it back.
    const isOlder = provider.health.benchedUntil > benchedUntil
    if (!provider.behind && !isOlder) provider.health = afterSuccess(provider.health)
    return result.success
  })

  const isBack = Effect.fnUntraced(function* (provider: Provider) {
    yield* askChain(provider)
    if (isWrong(provider)) return false
    if (!provider.behind) return true
    const answer = yield* provider.client.call({ method: "eth_blockNumber", params: [] })
    yield* noteHead(provider, yield* provider.client.read(() => readQuantity(answer, "the block number")))
    const others = list.filter((other) => other !== provider && !other.health.benched)
    if (others.some(({ head }) => provider.head < head - CAUGHT_UP_BLOCKS)) return false
    provider.behind = false
    return true
  })

  /** Finds out in the background whether a provider is back, so that no request waits for one that is not. */
  const probe = Effect.fnUntraced(function* (provider: Provider) {
    const result = yield* Effect.result(Effect.timeoutOption(isBack(provider), PROBE_TIMEOUT))
    const back = Result.isSuccess(result) && Option.getOrElse(result.success, () => false)
    const now = yield* Clock.currentTimeMillis
    if (back) provider.health = { ...provider.health, benched: false }
    else provider.health = (isWrong(provider) ? afterWrongChain : afterFailure)(provider.health, now)
  })

  const startProbes = Effect.gen(function* () {
    if (list.length === 1) return
    const now = yield* Clock.currentTimeMillis
    for (const provider of list) {
      if (!provider.health.benched || provider.health.benchedUntil > now || probing.has(provider)) continue
      probing.add(provider)
      yield* probe(provider).pipe(Effect.ensuring(Effect.sync(() => probing.delete(provider))), Effect.forkIn(scope))
    }
  })

  const isWrong = (provider: Provider) => provider.chainId !== null && provider.chainId !== chainId

  const order = (choice: Choice): ReadonlyArray<Provider> => {
    const { avoid, from, tags } = choice
    const healthiest = inOrderOfHealth(list.filter((provider) => !isWrong(provider)))
    const usable =
      tags === true ? first(healthiest, ({ knowsTags, health }) => knowsTags && !health.benched) : healthiest
    // What lacked old blocks once is asked last: a node may be filled up, and an address may have several behind it.
    const ordered = from === undefined ? usable : first(usable, ({ lowest }) => lowest <= from)
    return avoid === undefined ? ordered : first(ordered, (provider) => !avoid.has(provider))
  }

  const refusal = (wrong: ReadonlyArray<Provider>) =>
    new SourceRefused({ reason: wrong.map((provider) => wrongChain(provider).reason).join("; ") })

  /** The provider asked to be left alone for a while, which is not over. */
  const mustWait = (provider: Provider, now: number): RpcFailure | null => {
    const retryAfterMs = provider.health.notBefore - now
    if (retryAfterMs <= 0) return null
    const reason = `${provider.client.label}: it asked to be left alone for ${Math.ceil(retryAfterMs / 1000)} s more`
    return new RpcFailure({ kind: "quota", reason, retryAfterMs })
  }

  const use: Providers["use"] = Effect.fnUntraced(function* (ask, choice = {}) {
    yield* startProbes
    const failures: Array<RpcFailure> = []
    for (const provider of order(choice)) {
      const waiting = mustWait(provider, yield* Clock.currentTimeMillis)
      if (waiting !== null) {
        failures.push(waiting)
        continue
      }
      const result = yield* Effect.result(on(provider, ask))
      if (Result.isSuccess(result)) return result.success
      if (result.failure.kind !== "wrong-chain") failures.push(result.failure)
    }
    const wrong = list.filter(isWrong)
    if (failures.length === 0 || (wrong.length > 0 && !isServed)) return yield* refusal(wrong)
    return yield* new RpcFailure({
      kind: failures[0]!.kind,
      reason: failures.map(({ reason }) => reason).join("; "),
      retryAfterMs: Math.min(...failures.map(({ retryAfterMs }) => retryAfterMs ?? 0)),
    })
  })

  const bench: Providers["bench"] = Effect.fnUntraced(function* (provider, reason, behind = false) {
    provider.behind ||= behind
    const now = yield* Clock.currentTimeMillis
    provider.health = afterFailure(provider.health, now)
    yield* Metric.update(Metric.withAttributes(leftAside, { node: provider.client.label }), 1)
    yield* Effect.logWarning(`leaving ${provider.client.label} aside for a while: ${reason}`)
  })

  const verify = Effect.gen(function* () {
    isServed = false
    for (const provider of list) provider.chainId = null
    yield* use(() => Effect.void)
    for (const provider of list)
      if (provider.chainId === null) yield* Effect.forkIn(Effect.ignore(on(provider, () => Effect.void)), scope)
  }).pipe(Effect.catchTag("RpcFailure", ({ reason }) => Effect.fail(new SourceUnavailable({ reason }))))

  const preferred = Effect.sync(() => order({})[0] ?? list[0]!)

  const ready: Providers["ready"] = (choice) =>
    order(choice).filter(({ chainId: served, health }) => served === chainId && !health.benched)

  return { list, use, on, bench, preferred, ready, verify }
})
