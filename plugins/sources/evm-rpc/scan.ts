import { Effect, Schedule, type Scope, Stream } from "effect"
import { type Cursor, startOf } from "../../../core/model/cursor.ts"
import { SourceUnavailable, type SourceError } from "../../../core/plugin/error.ts"
import type { Anchor, InterestSet, SourceBatch } from "../../../core/plugin/source.ts"
import { RangesAhead } from "./ahead.ts"
import { deepBatch, nearBatch } from "./batches.ts"
import type { Chain } from "./chain.ts"
import { type Config, readStart } from "./config.ts"
import { Factories } from "./factories.ts"
import { Past } from "./factory-past.ts"
import { goesOn } from "./range-reads.ts"
import { routingOf } from "./routing.ts"
import { NEAR_BLOCKS, nearBlocks } from "./run.ts"
import { waitAfter } from "./rpc/backoff.ts"
import type { RpcFailure } from "./rpc/errors.ts"
import type { Providers } from "./rpc/providers.ts"
import type { Selector } from "./selector.ts"

const NEAR_BATCH = 32
/** A person waits for the answer, so the reads of a scan are not repeated for ever. */
const ATTEMPTS = 4

/** The blocks `from` to `to`, both included. */
interface Range {
  readonly from: number
  readonly to: number
  readonly interests: InterestSet<Selector>
  /** Where the network began. */
  readonly start?: Cursor
}

/**
 * Reads a closed range in order. What a reorganisation replaces meanwhile is read again, a few times. Fails if the range is
 * not on the chain yet, a provider stays away, or blocks that were yielded are not there any more.
 */
export const scanChain = (
  chain: Chain,
  providers: Providers,
  config: Config,
  range: Range,
): Stream.Stream<SourceBatch, SourceError> =>
  Stream.unwrap(Effect.map(Effect.scope, (scope) => scanOnce(chain, providers, config, range, scope)))

const scanOnce = (
  chain: Chain,
  providers: Providers,
  config: Config,
  range: Range,
  scope: Scope.Scope,
): Stream.Stream<SourceBatch, SourceError> => {
  const factories = new Factories()
  const routing = routingOf(Effect.succeed(range.interests), factories)
  const ahead = new RangesAhead(chain, providers, scope, config.requests_per_second)
  let at = range.from
  /** The last block that was yielded. */
  let last: Anchor | undefined

  /** Blocks that a reorganisation may replace are yielded together, once all of them are of one chain. */
  const near = Effect.fnUntraced(function* (head: number) {
    const next = Math.min(range.to, at + NEAR_BATCH - 1)
    const end = next <= head - NEAR_BLOCKS ? next : range.to
    const batches: Array<SourceBatch> = []
    let before = last
    for (let from = at; from <= end; from += NEAR_BATCH) {
      const headers = yield* chain.headers(from, Math.min(end, from + NEAR_BATCH - 1))
      yield* goesOn(before, headers[0]!.parentHash)
      const { batch } = yield* nearBatch(chain, headers, yield* routing, startOf(from))
      batches.push(batch)
      before = batch.resume.at(-1)
    }
    return batches
  })

  const deep = (from: number, to: number) =>
    Stream.unfold(from, (next) => {
      if (next > to) return Effect.undefined
      return ahead.next({ from: next, to }, routing).pipe(
        Effect.tap((read) => goesOn(last, read.contents.parentHash)),
        Effect.flatMap((read) => deepBatch(chain, read, next, startOf(next))),
        Effect.map(({ batch }) => [batch, batch.upTo.primary + 1] as const),
      )
    })

  /** Makes the contracts known that factories made before the range. */
  const readPast = Effect.fnUntraced(function* (deepEnd: number) {
    yield* routing
    const before = startOf(range.from)
    const begin = readStart(config.start)
    const first = range.start ?? (begin._tag === "Block" ? startOf(begin.number) : before)
    const past = new Past(chain, providers, factories, first, config.requests_per_second)
    past.settle(before)
    for (const factory of factories.unknown) {
      while (!factories.of(factory).followed)
        yield* past.readOf(factory, before, { deepEnd, hashOf: () => undefined }).pipe(
          Effect.retry({
            times: ATTEMPTS - 1,
            while: ({ _tag }) => _tag === "RpcFailure",
            schedule: Schedule.exponential("200 millis"),
          }),
          Effect.catchTag("RpcFailure", ({ reason }) => Effect.fail(new SourceUnavailable({ reason }))),
        )
    }
  })

  /** What is left, by what the head is now. */
  const rest = Effect.gen(function* () {
    const { latest } = yield* chain.tagged([])
    if (latest.number < range.to)
      return yield* new SourceUnavailable({
        reason: `block ${range.to} is not on the chain yet; the newest one is ${latest.number}`,
      })
    const deepEnd = Math.min(range.to, latest.number - nearBlocks(config))
    yield* readPast(deepEnd)
    factories.forgetBehind(startOf(at))
    if (at <= deepEnd) return deep(at, deepEnd)
    return Stream.fromIterableEffect(near(latest.number))
  })

  /** Batches until one read fails; then again behind the last batch. */
  const pull = (failures: number): Stream.Stream<SourceBatch, SourceError> =>
    Stream.suspend(() => {
      if (at > range.to) return Stream.empty
      const begin = at
      return Stream.unwrap(rest).pipe(
        Stream.tap((batch) =>
          Effect.sync(() => {
            at = batch.upTo.primary + 1
            last = batch.resume.at(-1)
          }),
        ),
        Stream.catchTag("RpcFailure", (failure: RpcFailure) => {
          const count = at > begin ? 1 : failures + 1
          if (count >= ATTEMPTS) return Stream.fail(new SourceUnavailable({ reason: failure.reason }))
          return Stream.unwrap(Effect.as(Effect.sleep(waitAfter(count, failure.retryAfterMs)), pull(count)))
        }),
        Stream.concat(Stream.suspend(() => (at > begin ? pull(0) : Stream.empty))),
      )
    })
  return pull(0)
}
