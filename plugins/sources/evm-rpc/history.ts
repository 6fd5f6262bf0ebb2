import { Effect, Result } from "effect"
import { endOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceOutcome } from "../../../core/plugin/source.ts"
import type { Chain } from "./chain.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"
import { type Comparison, compareHistory, type Divergence, type HashWindow } from "./window.ts"

type Invalidated = Extract<SourceOutcome, { readonly _tag: "Invalidated" }>

/**
 * What a comparison came to. `Unproven`: a provider told of a fork and then not any more. `Fork`: blocks that were handed
 * over are gone, as `by` says, and another provider too if there is a `witness`.
 */
export type Finding =
  | { readonly _tag: "Intact" }
  | { readonly _tag: "Unproven"; readonly by: Provider }
  | { readonly _tag: "Fork"; readonly by: Provider; readonly witness: boolean; readonly outcome: Invalidated }

const intact: Finding = { _tag: "Intact" }

/** So many blocks are compared in one request. */
const STEP = 32

/** Other providers that are asked for their opinion before anything is invalidated. */
const MAX_WITNESSES = 2

/** The pause before one provider is asked a second time. */
const LONGEST_PAUSE_MS = 1000

interface Opinion extends Divergence {
  readonly by: Provider
  readonly head: number
}

/**
 * Compares the known hashes with the chain as it is now, and says whether blocks that were handed over are gone.
 *
 * A fork is believed only after a second look: by another provider if there is one, else by the same one after a
 * pause. Only another hash at a known height counts; a provider that lacks the blocks has no opinion. A provider that
 * still has one of our blocks and is at least as far as one that has another there outweighs it, and that one is left
 * aside: a node that stays on a dead fork takes nothing back, also where another one tells of a fork further up.
 */
export const findFork = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  known: HashWindow,
  pauseMs: number,
): Effect.fn.Return<Finding, RpcFailure | SourceRefused> {
  const first = yield* firstOpinion(chain, providers, known)
  if (first.intact) return intact

  const witnesses: Array<Opinion> = []
  for (const provider of providers.list) {
    if (provider === first.by || provider.health.benched || witnesses.length === MAX_WITNESSES) continue
    const opinion = yield* Effect.result(providers.on(provider, () => compareOn(chain, provider, known)))
    if (Result.isSuccess(opinion)) witnesses.push(opinion.success)
  }
  const opinions = [first, ...witnesses]
  const standing = opinions.filter((opinion) => !opinions.some((other) => refutes(other, opinion)))
  for (const { by } of opinions.filter((opinion) => !standing.includes(opinion)))
    yield* providers.bench(by, "it has other blocks than a provider that is as far")
  const telling = standing.filter(({ intact }) => !intact)
  const [teller] = telling
  if (teller === undefined) return intact
  const { by } = teller
  const witness = telling.length > 1
  if (!witness) {
    yield* Effect.sleep(Math.min(pauseMs, LONGEST_PAUSE_MS))
    const again = yield* providers.on(by, () => compareOn(chain, by, known))
    if (again.intact) return { _tag: "Unproven", by }
    telling.push(again)
  }
  return { _tag: "Fork", by, witness, outcome: invalidation(telling, known) }
})

/** Whether `one` is as far as `other` and still has one of our blocks that the other says are gone. */
const refutes = (one: Opinion, { lowestOther, head }: Opinion): boolean =>
  lowestOther !== undefined && one.common !== undefined && one.common >= lowestOther.primary && one.head >= head

/** What the provider that is asked first thinks; if it has none of the blocks, another one that has some. */
const firstOpinion = Effect.fnUntraced(function* (chain: Chain, providers: Providers, known: HashWindow) {
  const first = yield* providers.use((provider) => compareOn(chain, provider, known))
  if (hasCompared(first)) return first
  for (const provider of providers.list) {
    if (provider === first.by || provider.health.benched) continue
    const other = yield* Effect.result(providers.on(provider, () => compareOn(chain, provider, known)))
    if (Result.isSuccess(other) && hasCompared(other.success)) return other.success
  }
  return first
})

const hasCompared = ({ intact, common }: Opinion): boolean => !intact || common !== undefined

/** Walks down from the newest known block to the first that the provider has as well. */
const compareOn = Effect.fnUntraced(function* (
  chain: Chain,
  provider: Provider,
  known: HashWindow,
): Effect.fn.Return<Opinion, RpcFailure> {
  const ours = known.newestFirst
  const compared: Array<Comparison> = []
  let head = 0
  for (let i = 0; i < ours.length; i += STEP) {
    const step = ours.slice(i, i + STEP)
    const answer = yield* chain.headersOn(
      provider,
      step.map(({ primary }) => primary),
    )
    head = answer.latest.number
    for (const [j, { primary, hash }] of step.entries())
      compared.push({ primary, ours: hash, theirs: answer.headers[j]?.hash ?? null })
    if (compareHistory(compared).common !== undefined) break
  }
  return { ...compareHistory(compared), by: provider, head }
})

/** From the lowest height that any opinion proves, so that nothing on a dead fork stays. */
const invalidation = (opinions: ReadonlyArray<Opinion>, known: HashWindow): Invalidated => {
  const oldest = known.newestFirst.at(-1)!
  const from = Math.min(...opinions.map(({ common }) => common ?? oldest.primary - 1))
  const { primary, ours, theirs } = opinions[0]!.lowestOther!
  const proof = `block ${primary} was ${ours} and is now ${theirs}`
  const reach = opinions.some(({ common }) => common === undefined)
    ? `none of the recorded blocks down to ${oldest.primary} is on the chain any more`
    : `block ${from} is the newest recorded one that still is on the chain`
  return { _tag: "Invalidated", from: endOf(from), cause: `reorganisation: ${proof}; ${reach}` }
}
