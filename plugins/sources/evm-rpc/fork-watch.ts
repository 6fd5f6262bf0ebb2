import { Effect } from "effect"
import { compareCursors, type Cursor, nextOf } from "../../../core/model/cursor.ts"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import type { SourceOutcome, SourceRun } from "../../../core/plugin/source.ts"
import { changed, lacks } from "./block-reads.ts"
import type { Chain } from "./chain.ts"
import { findFork } from "./history.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Provider, Providers } from "./rpc/providers.ts"
import type { Selector } from "./selector.ts"
import type { HashWindow } from "./window.ts"

/** Looks for forks of what one run handed over, and asks another provider where one tells of the same fork again and again. */
export class ForkWatch {
  readonly #chain: Chain
  readonly #providers: Providers
  readonly #known: HashWindow
  readonly #pauseMs: number
  /** Where the run began: behind the last fork, if there was one. */
  readonly #begin: Cursor
  #wasAskedElsewhere = false
  /** Who told of a fork and took it back, and how far the run was then. */
  #unproven: { readonly by: Provider; readonly at: number | undefined } | undefined = undefined

  constructor(
    chain: Chain,
    providers: Providers,
    known: HashWindow,
    pauseMs: number,
    resume: SourceRun<Selector>["resume"],
  ) {
    this.#chain = chain
    this.#providers = providers
    this.#known = known
    this.#pauseMs = pauseMs
    this.#begin = resume.cursor
  }

  /** Compares what was handed over with the chain. Null if it stands, or if nothing is proven yet. */
  readonly look: Effect.Effect<SourceOutcome | null, RpcFailure | SourceRefused> = Effect.gen(
    { self: this },
    function* () {
      if (this.#known.newest === undefined) return null
      const found = yield* findFork(this.#chain, this.#providers, this.#known, this.#pauseMs)
      if (found._tag === "Intact") return null
      if (found._tag === "Unproven") {
        const at = this.#known.newest.primary
        const isRepeated = this.#unproven?.by === found.by && this.#unproven.at === at
        this.#unproven = { by: found.by, at }
        if (isRepeated) yield* this.#askElsewhere(found.by, "it told of the same fork twice, and took it back")
        return null
      }
      // Nothing that this run read would stay: the provider may be of two minds, and the run before may have ended so too.
      const { by, outcome, witness } = found
      if (!witness && !this.#wasAskedElsewhere && compareCursors(outcome.from, this.#begin) === 0) {
        this.#wasAskedElsewhere = yield* this.#askElsewhere(by, "all that was read since the last fork is gone again")
        if (this.#wasAskedElsewhere) return null
      }
      return outcome
    },
  )

  /**
   * Looks for a fork when a run begins. If there is none, learns the hash of the last block that was handed over where none
   * was recorded for it, as after a rewind into a range: what is read next must go on from it. Who tells it must have the
   * newest block of which the hash is known.
   */
  readonly verify: Effect.Effect<SourceOutcome | null, RpcFailure | SourceRefused> = Effect.gen(
    { self: this },
    function* () {
      const found = yield* this.look
      const { newest } = this.#known
      const last = nextOf(this.#begin) - 1
      if (found !== null || newest === undefined || newest.primary >= last) return found
      const block = yield* this.#providers.use(
        Effect.fnUntraced({ self: this }, function* (provider) {
          const { headers } = yield* this.#chain.headersOn(provider, [newest.primary, last])
          const [same, block] = [headers[0]!, headers[1]!]
          if (same === null) return yield* lacks(provider, newest.primary)
          if (same.hash !== newest.hash)
            return yield* changed(provider, `block ${newest.primary} is not the one that was read`)
          return block ?? (yield* lacks(provider, last))
        }),
        { from: newest.primary },
      )
      this.#known.put({ primary: last, hash: block.hash })
      return null
    },
  )

  /**
   * Looks for a fork because what a provider read does not go on from what was handed over. If none is found the provider is
   * asked no more for a while, unless it is the only one.
   */
  readonly doubt = Effect.fnUntraced(function* (
    this: ForkWatch,
    by: Provider,
    what: string,
  ): Effect.fn.Return<SourceOutcome | null, RpcFailure | SourceRefused> {
    const found = yield* this.look
    if (found === null && !by.health.benched) yield* this.#askElsewhere(by, what)
    return found
  })

  /** Leaves a provider aside if there is another one; answers whether there is. */
  readonly #askElsewhere = Effect.fnUntraced(function* (this: ForkWatch, by: Provider, reason: string) {
    const another = this.#providers.list.some((other) => other !== by && !other.health.benched)
    if (another) yield* this.#providers.bench(by, reason)
    return another
  })
}
