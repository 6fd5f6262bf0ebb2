import { Schema } from "effect"
import { between, orElse, positiveInt } from "./schemas.ts"

/** @param length the maximum in words */
const msUpTo = (maximum: number, length: string) =>
  Schema.Int.check(
    Schema.isBetween({ minimum: 1, maximum }, { expected: `an integer between 1 and ${maximum} (${length} in ms)` }),
  )

/** Attempts in all, and delays in ms; the first is not above the cap. */
export const Retry = Schema.Struct({
  maxAttempts: positiveInt.pipe(orElse(8)),
  initialBackoffMs: positiveInt.pipe(orElse(200)),
  maxBackoffMs: positiveInt.pipe(orElse(30_000)),
}).check(
  Schema.makeFilter(({ initialBackoffMs, maxBackoffMs }) =>
    initialBackoffMs <= maxBackoffMs
      ? undefined
      : {
          path: ["initialBackoffMs"],
          issue: `is ${initialBackoffMs} and above maxBackoffMs, which is ${maxBackoffMs}; it must not be above it`,
        },
  ),
)
export type Retry = typeof Retry.Type
export const defaultRetry: Retry = { maxAttempts: 8, initialBackoffMs: 200, maxBackoffMs: 30_000 }

/**
 * The most deliveries of matches that a network may make through a sink in a window of `windowMs` ms, which opens with the
 * first of them. What is refused is a dead letter.
 */
export const Throttle = Schema.Struct({
  maxDeliveries: positiveInt.pipe(orElse(60)),
  windowMs: positiveInt.pipe(orElse(60_000)),
})
export type Throttle = typeof Throttle.Type

/**
 * Gathers matches into one digest: until `maxBatch` are there (at most 10,000), or `windowMs` ms (at most a day) have passed
 * since the first. The bounds limit what an open batch may hold in memory and how long the checkpoint waits for it.
 */
export const Aggregate = Schema.Struct({
  windowMs: msUpTo(86_400_000, "one day").pipe(orElse(30_000)),
  maxBatch: between(1, 10_000).pipe(orElse(100)),
})
export type Aggregate = typeof Aggregate.Type

/** A hit that is held is a row, so a window costs what falls into it. Whole days that fit into the 32 bits of GraphQL. */
const gateWindow = msUpTo(2_073_600_000, "24 days")
const by = Schema.NullOr(Schema.String).pipe(orElse<string | null>(null))

/**
 * Decides on event time which hits of a monitor become matches, for each value of the CEL expression `by` apart.
 * `threshold`: `count` hits (at most 1,000) whose times span at most `windowMs` ms become one digest, and counting starts
 * anew; they are minted in one transaction, which the bound keeps below 100 ms. `max_once`: the first hit becomes a match, those within `windowMs` ms of it are left out.
 */
export const Gate = Schema.Union([
  Schema.Struct({ type: Schema.Literal("threshold"), count: between(1, 1_000), windowMs: gateWindow, by }),
  Schema.Struct({
    type: Schema.Literal("max_once"),
    windowMs: gateWindow,
    by,
    count: Schema.optionalKey(
      Schema.Never.annotate({
        message: "is not for max_once, which lets one hit through a window; leave it out, or make the type threshold",
      }),
    ),
  }),
])
export type Gate = typeof Gate.Type

/** The most deliveries of one network that a sink may be asked to take at once. */
export const MAX_CONCURRENCY = 100
