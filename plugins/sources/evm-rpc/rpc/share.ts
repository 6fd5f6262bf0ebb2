import type { FailureKind } from "./errors.ts"

/** What a provider takes of the requests that are sent before their answers are needed. Times are in ms since 1970. */
export interface Share {
  /** How many it is sent at once. */
  readonly limit: number
  /** How many are under way. */
  readonly underWay: number
  /** Answers since it last had too much. */
  readonly successes: number
  /** It is sent none before this time. */
  readonly restsUntil: number
}

/** Requests that no provider gets more of at once. */
const MOST = 16

/** A provider that may be asked so often a second keeps this part of a second free for other requests. */
const PACED_PART = 4

const REST_MS = 1000

/** A node that lacks blocks is behind the others: it has them some time later. */
const BEHIND_MS = 10_000

/** The greatest limit where `perSecond` requests are allowed. */
export const greatestLimit = (perSecond: number | undefined): number =>
  perSecond === undefined ? MOST : Math.min(MOST, Math.max(1, Math.floor(perSecond / PACED_PART)))

export const initialShare = (greatest: number): Share => ({
  limit: greatest,
  underWay: 0,
  successes: 0,
  restsUntil: 0,
})

/** After an answer: one more after as many answers as the limit. */
export const afterAnswer = (share: Share, greatest: number): Share => {
  const successes = share.successes + 1
  return successes < share.limit
    ? { ...share, successes }
    : { ...share, successes: 0, limit: Math.min(greatest, share.limit + 1) }
}

/** After a failure: half as many and a rest, if it had too much; a rest if it lacks the blocks. */
export const afterRefusal = (share: Share, kind: FailureKind, now: number, retryAfterMs = 0): Share => {
  if (kind === "quota" || kind === "overload" || kind === "unreachable")
    return {
      ...share,
      limit: Math.max(1, share.limit >> 1),
      successes: 0,
      restsUntil: Math.max(share.restsUntil, now + Math.max(REST_MS, retryAfterMs)),
    }
  return kind === "missing" ? { ...share, restsUntil: Math.max(share.restsUntil, now + BEHIND_MS) } : share
}

/** Whether it may be sent one more. */
export const hasRoom = ({ limit, underWay, restsUntil }: Share, now: number): boolean =>
  underWay < limit && restsUntil <= now
