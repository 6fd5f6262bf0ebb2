import { Clock, Effect, Metric, Result, type Scope } from "effect"
import type { Chain } from "./chain.ts"
import { HeadPace } from "./head-pace.ts"
import type { Header } from "./header.ts"
import type { Provider, Providers } from "./rpc/providers.ts"

/** Polls after which other providers are asked where they are although the head moves: the one that is polled may be behind. */
const LOOK_POLLS = 60
/** The same where a block was announced that the polled one does not have. */
const LOOK_POLLS_UNMET = 5

/** The longest that others are waited for when a run begins. */
const FIRST_LOOK = "5 seconds"

/** Notices heads that stand still or stay behind. */
export interface HeadWatch {
  /**
   * Takes note of what a poll found. When the run begins, and now and then, it asks the others, and leaves the polled one
   * aside if they are further; answers whether it did.
   */
  readonly polled: (by: Provider, latest: Header, isUnmet: boolean) => Effect.Effect<boolean>
  /** What is wrong with the head that is known, or null. */
  readonly trouble: Effect.Effect<string | null>
}

const seconds = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`)

/** Makes the watch of one run; its metric ends with the scope. */
export const makeHeadWatch = Effect.fnUntraced(function* (
  chain: Chain,
  providers: Providers,
  pollMs: number,
): Effect.fn.Return<HeadWatch, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const started = clock.currentTimeMillisUnsafe()
  const pace = new HeadPace(pollMs, started)
  let lookedAt = started
  /** How long the head has to stand still until the others are asked next. */
  let patience = 0
  let newest: { readonly head: number; readonly by: Provider } | null = null
  let isTold = false

  yield* exposeAge(() => pace.stillFor(clock.currentTimeMillisUnsafe()))

  /** Another provider has a block: leaves the polled one aside if that does not have it by now. */
  const weigh = Effect.fnUntraced(function* (by: Provider, head: number, other: Provider, block: number) {
    const again = yield* Effect.result(providers.on(by, () => chain.headersOn(by, [])))
    if (Result.isSuccess(again) && again.success.latest.number >= block) return false // blocks came in between
    yield* providers.bench(by, `it is at block ${head} while ${other.client.label} is at ${other.head}`, true)
    return true
  })

  /** Asks another provider for a block: what it says is its newest one proves little; the block itself does. */
  const blockOf = (other: Provider, block: number): Effect.Effect<Header | null> =>
    providers
      .on(other, () => chain.headersOn(other, [block]))
      .pipe(
        Effect.map(({ headers }) => headers[0]!),
        Effect.orElseSucceed(() => null),
      )

  const othersThan = (by: Provider) => providers.list.filter((other) => other !== by && !other.health.benched)

  /** Asks the others for a block that the polled provider should have by now. */
  const look = Effect.fnUntraced(function* (by: Provider, head: number, block: number) {
    for (const other of othersThan(by))
      if ((yield* blockOf(other, block)) !== null) return yield* weigh(by, head, other, block)
    return false
  })

  /**
   * Asks the others for the block behind the head of the polled provider. Where that has another parent, the polled one
   * stays on a dead fork: what is read of it would be taken back, and the next run, which knows nothing of that, would
   * read it again.
   */
  const lookForDeadFork = Effect.fnUntraced(function* (by: Provider, { number, hash }: Header) {
    const block = number + 1
    const found = yield* Effect.forEach(
      othersThan(by),
      (other) =>
        blockOf(other, block).pipe(
          Effect.timeoutOrElse({ duration: FIRST_LOOK, orElse: () => Effect.succeed(null) }),
          Effect.map((header) => ({ other, header })),
        ),
      { concurrency: "unbounded" },
    )
    const further = found.find(({ header }) => header !== null && header.parentHash !== hash)
    return further === undefined ? false : yield* weigh(by, number, further.other, block)
  })

  const polled: HeadWatch["polled"] = Effect.fnUntraced(function* (by, latest, isUnmet) {
    const now = clock.currentTimeMillisUnsafe()
    const isFirst = newest === null
    const head = latest.number
    const isHigher = pace.polled(head, now)
    if (isHigher || newest === null) {
      newest = { head, by }
      patience = pace.suspiciousMs
    }
    if (isHigher && isTold) {
      isTold = false
      yield* Effect.logInfo(`new blocks come again; the newest at ${by.client.label} is ${head}`)
    }
    if (providers.list.length === 1) return false
    if (isFirst) return yield* lookForDeadFork(by, latest)
    const still = pace.stillFor(now)
    if (still >= patience) {
      patience = still + Math.min(still, LOOK_POLLS * pollMs)
      lookedAt = now
      return yield* look(by, head, head + 1)
    }
    if (now - lookedAt < (isUnmet ? LOOK_POLLS_UNMET : LOOK_POLLS) * pollMs) return false
    lookedAt = now
    return yield* look(by, head, head + pace.toleratedBlocks + 1)
  })

  const trouble = Effect.suspend(() => {
    if (newest === null || pace.stillFor(clock.currentTimeMillisUnsafe()) < pace.troubleMs) return Effect.succeed(null)
    const usual = pace.msPerBlock === null ? "" : `, while one usually comes every ${seconds(pace.msPerBlock)}`
    const reason =
      `no node has a new block since ${new Date(pace.movedAt).toISOString()}${usual}; the newest is ` +
      `${newest.head}, at ${newest.by.client.label}`
    if (isTold) return Effect.succeed(reason)
    isTold = true
    return Effect.as(Effect.logWarning(reason), reason)
  })

  return { polled, trouble }
})

/** Shows for how long no new block was found, read when it is asked for. */
const exposeAge = (ms: () => number) =>
  Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) =>
      Metric.registerUnsafe(
        Metric.gauge("blockwatcher_rpc_head_age_seconds", { description: "Seconds since a new block was found" }),
        context,
        { get: () => ({ value: ms() / 1000 }), update: () => {}, modify: () => {} },
      ),
    ),
    (registration) => Effect.sync(() => registration.remove()),
  )
