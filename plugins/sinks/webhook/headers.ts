import { isBrokenReference } from "../../../core/plugin/secrets.ts"

/** Headers that identify, sign or frame a delivery; a sink's own headers may not change what they say. */
const RESERVED = new Set([
  "idempotency-key",
  "webhook-id",
  "webhook-timestamp",
  "webhook-signature",
  "blockwatcher-attempt",
  "host",
  "content-length",
  "connection",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
])

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** True for what HTTP allows as a header's value. */
export const isHeaderValue = (value: string): boolean => VALUE.test(value)

/** Why a header of a config is refused, or null. */
export const headerProblem = (name: string, value: string): string | null => {
  if (!NAME.test(name)) return "this is no valid header name; use letters, digits and '-'"
  if (RESERVED.has(name.toLowerCase())) return "blockwatcher sets this header itself; remove it"
  if (isBrokenReference(value)) return "this is no valid reference; write env:NAME or file:PATH"
  return isHeaderValue(value) ? null : "the value holds characters that HTTP does not allow, such as a line break"
}
