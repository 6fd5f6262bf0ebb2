import { Clock, Effect, Result } from "effect"
import type { SourceRefused } from "../../../core/plugin/error.ts"
import { Recent } from "../evm-rpc/recent.ts"
import { waitAfter } from "../evm-rpc/rpc/backoff.ts"
import type { RpcFailure } from "../evm-rpc/rpc/errors.ts"
import type { Provider, Providers } from "../evm-rpc/rpc/providers.ts"
import type { Announced } from "./announced.ts"
import { type PendingTransaction, readPending } from "./pending.ts"
import { Polls } from "./polls.ts"
import { hashOf, type Told } from "./told.ts"

/** Hashes of transactions that were handed over, so that each is handed over once. */
const REMEMBERED = 200_000

/** How long nodes are asked again for a transaction that one told of and none knows, in ms. */
const PATIENCE_MS = 10_000

/** The wait before it is asked for again, in ms: twice as long each time, up to the poll interval. */
const FIRST_WAIT_MS = 20

/** Intervals between two polls while a WebSocket tells what is pending: what it leaves out is found, late. */
const TRUSTING = 10

/** A transaction of which only the hash was told. Times are in ms since 1970. */
interface Awaited {
  readonly since: number
  /** Not asked for before. */
  readonly at: number
  readonly wait: number
}

/** Finds pending transactions that were not seen before: those that a subscription tells and those that polls find. */
export class PendingFeed {
  readonly #providers: Providers
  readonly #announced: Announced | null
  readonly #pollMs: number
  readonly #polls = new Polls()
  readonly #seen = new Recent(REMEMBERED)
  readonly #awaited = new Map<string, Awaited>()
  /** Those that were not handed over yet: a request that fails loses nothing. */
  readonly #fresh = new Map<string, PendingTransaction>()
  #polledAt = Number.NEGATIVE_INFINITY
  /** No node is asked before. */
  #notBefore = 0
  #failures = 0
  #failure: string | null = null

  constructor(providers: Providers, announced: Announced | null, pollMs: number) {
    this.#providers = providers
    this.#announced = announced
    this.#pollMs = pollMs
  }

  /** What came since the last time. What goes wrong meanwhile is told by `trouble`, and tried again by the next ones. */
  readonly next: Effect.Effect<ReadonlyArray<PendingTransaction>, SourceRefused> = Effect.gen(
    { self: this },
    function* () {
      const now = yield* Clock.currentTimeMillis
      this.#take(this.#announced?.take() ?? [], now)
      if (now >= this.#notBefore) {
        const asked = yield* Effect.result(this.#ask(now))
        if (Result.isSuccess(asked)) this.#mend()
        else if (asked.failure._tag === "SourceRefused") return yield* asked.failure
        else yield* this.#note(asked.failure)
      }
      const found = [...this.#fresh.values()]
      this.#fresh.clear()
      for (const { hash } of found) this.#seen.add(hash)
      return found
    },
  )

  /** What is wrong, or null. */
  get trouble(): string | null {
    const reasons = [this.#failure, this.#announced?.trouble ?? null].filter((reason) => reason !== null)
    return reasons.length === 0 ? null : reasons.join("; ")
  }

  /** Waits until there may be something. */
  readonly wait: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    let at = this.#nextPoll
    for (const awaited of this.#awaited.values()) at = Math.min(at, awaited.at)
    const sleep = Effect.sleep(Math.max(0, Math.max(at, this.#notBefore) - now))
    yield* this.#announced === null ? sleep : Effect.raceFirst(sleep, this.#announced.change)
  })

  get #nextPoll(): number {
    return this.#polledAt + this.#pollMs * (this.#announced?.isTrusted === true ? TRUSTING : 1)
  }

  /** Takes what is news; answers whether anything is. */
  #take(told: ReadonlyArray<Told>, now: number): boolean {
    let hasNews = false
    for (const one of told) {
      const hash = hashOf(one)
      if (this.#seen.has(hash) || this.#fresh.has(hash)) continue
      if (typeof one !== "string") {
        this.#awaited.delete(hash)
        this.#fresh.set(hash, one)
      } else if (this.#awaited.has(hash)) continue
      else this.#awaited.set(hash, { since: now, at: now, wait: Math.min(FIRST_WAIT_MS, this.#pollMs) })
      hasNews = true
    }
    return hasNews
  }

  /** Asks for what is due. */
  readonly #ask = Effect.fnUntraced(function* (
    this: PendingFeed,
    now: number,
  ): Effect.fn.Return<void, RpcFailure | SourceRefused> {
    const polled = now >= this.#nextPoll ? yield* Effect.result(this.#poll) : Result.void
    const then = yield* Clock.currentTimeMillis
    const due = [...this.#awaited].flatMap(([hash, { at }]) => (at <= then ? [hash] : []))
    if (due.length > 0) yield* this.#providers.use((provider) => this.#fetch(provider, due))
    yield* Effect.fromResult(polled)
  })

  /** Nodes that cannot be polled are no trouble as long as a subscription tells what is pending. */
  readonly #poll = Effect.gen({ self: this }, function* () {
    const told = yield* this.#providers
      .use((provider) => this.#polls.ask(provider))
      .pipe(
        Effect.catchIf(
          (failure) =>
            failure._tag === "RpcFailure" && failure.kind === "unsupported" && this.#announced?.isDown === false,
          () => Effect.succeed(null),
        ),
      )
    this.#polledAt = yield* Clock.currentTimeMillis
    if (told === null) return
    const hasNews = this.#take(told, this.#polledAt)
    this.#announced?.polled(hasNews)
  })

  /** Asks for the transactions of which only the hash was told. */
  readonly #fetch = Effect.fnUntraced(function* (
    this: PendingFeed,
    { client }: Provider,
    hashes: ReadonlyArray<string>,
  ): Effect.fn.Return<void, RpcFailure> {
    const answers = yield* client.batch(hashes.map((hash) => ({ method: "eth_getTransactionByHash", params: [hash] })))
    const now = yield* Clock.currentTimeMillis
    for (const [i, hash] of hashes.entries()) {
      const awaited = this.#awaited.get(hash)
      if (awaited === undefined) continue // another node had it before this one failed
      const answer = yield* Effect.fromResult(answers[i]!)
      if (answer !== null) this.#fresh.set(hash, yield* client.read(() => readPending(answer)))
      if (answer !== null || now - awaited.since > PATIENCE_MS) this.#awaited.delete(hash)
      else {
        const { since, wait } = awaited
        this.#awaited.set(hash, { since, at: now + wait, wait: Math.min(this.#pollMs, 2 * wait) })
      }
    }
  })

  #mend(): void {
    this.#failures = 0
    this.#failure = null
  }

  readonly #note = Effect.fnUntraced(function* (this: PendingFeed, failure: RpcFailure) {
    this.#failures++
    this.#failure = failure.reason
    this.#notBefore = (yield* Clock.currentTimeMillis) + waitAfter(this.#failures, failure.retryAfterMs)
  })
}
