import type { HttpFailure, HttpResponse } from "../../../core/plugin/egress.ts"
import { type DeliveryError, Permanent, RateLimited, TooLarge, Transient } from "../../../core/plugin/error.ts"

const SECONDS = /^\d{1,15}$/
const HTTP_DATE = /^[A-Z][a-z]{2,8}, ?\d/

/** A `Retry-After` header in ms from `now`, or null if it is absent or unreadable. */
export const retryAfterMs = (header: string | undefined, now: number): number | null => {
  const value = header?.trim() ?? ""
  if (SECONDS.test(value)) return Number(value) * 1_000
  const date = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

const TRANSIENT_BELOW_500 = new Set([408, 409, 425])

/** What an answer means for the delivery: null for success, else the class of its failure, with `reason`. */
export const outcomeOf = (response: HttpResponse, reason: string, now: number): DeliveryError | null => {
  const { status } = response
  if (status >= 200 && status < 300) return null
  const wait = retryAfterMs(response.headers["retry-after"], now)
  if (status === 429 || (status === 503 && wait !== null)) return new RateLimited({ reason, retryAfterMs: wait })
  if (status >= 500 || TRANSIENT_BELOW_500.has(status)) return new Transient({ reason })
  if (status === 410) return new Permanent({ reason, gone: true })
  return status === 413 ? new TooLarge({ reason }) : new Permanent({ reason })
}

/** What it means that there was no complete answer: what the policy forbids stays forbidden, all else may pass. */
export const outcomeOfFailure = ({ kind, reason }: HttpFailure): DeliveryError =>
  kind === "denied" ? new Permanent({ reason }) : new Transient({ reason })
