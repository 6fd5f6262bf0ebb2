import { LONGEST_RETRY_AFTER_MS } from "./backoff.ts"
import type { FailureKind } from "./errors.ts"

/** How a provider has been doing. Times are in ms since 1970. */
export interface Health {
  /** Failures since it last did well for a while. */
  readonly failures: number
  /** Successes since the last failure. */
  readonly successes: number
  /** It is not preferred before this time, and then only after it answered a probe. */
  readonly benchedUntil: number
  readonly benched: boolean
  /** It asked not to be asked before this time. */
  readonly notBefore: number
}

export const healthy: Health = { failures: 0, successes: 0, benchedUntil: 0, benched: false, notBefore: 0 }

const FIRST_BENCH_MS = 1000
const LONGEST_BENCH_MS = 120_000

/** So many successes in a row let old failures be forgotten: a provider that flaps stays benched longer each time. */
const FORGIVEN_AFTER = 20

/** Benches after a failure: twice as long as the last time, at least as long as the provider asked for. */
export const afterFailure = (health: Health, now: number, retryAfterMs = 0): Health => {
  const backoff = Math.min(LONGEST_BENCH_MS, FIRST_BENCH_MS * 2 ** Math.min(health.failures, 20))
  const asked = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS)
  return {
    failures: health.failures + 1,
    successes: 0,
    benchedUntil: now + Math.max(backoff, asked),
    benched: true,
    notBefore: now + asked,
  }
}

/** After an answer: the provider is preferred again, its failures are forgotten later. */
export const afterSuccess = (health: Health): Health => {
  if (health.failures === 0) return health
  const successes = health.successes + 1
  if (successes >= FORGIVEN_AFTER) return healthy
  return { ...healthy, failures: health.failures, successes }
}

/** Failures that say that the provider is not well; the others concern one request. */
export const isTrouble = (kind: FailureKind): boolean =>
  kind === "unreachable" || kind === "malformed" || kind === "quota" || kind === "overload" || kind === "refused"

/** The order in which providers are tried: the healthy ones as configured, then the benched, soonest over first. */
export const inOrderOfHealth = <P extends { readonly health: Health }>(
  providers: ReadonlyArray<P>,
): ReadonlyArray<P> => [
  ...providers.filter(({ health }) => !health.benched),
  ...providers.filter(({ health }) => health.benched).toSorted((a, b) => a.health.benchedUntil - b.health.benchedUntil),
]
