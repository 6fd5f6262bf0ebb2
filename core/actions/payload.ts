import { Result, Schema } from "effect"
import { under } from "../model/problem.ts"
import { ENCODING } from "../storage/events.ts"
import type { Subscription } from "./action.ts"
import type { EventType } from "./event-type.ts"
import { InvalidPayload } from "./invalid-payload.ts"
import { payloadProblems } from "./payload-problems.ts"

/** A payload as it stands in a row. */
export interface StoredPayload {
  /** Its type's version when it was written. */
  readonly version: number
  /** Null in rows of before encodings were recorded: then it is the first. */
  readonly encoding: number | null
  readonly text: string | null
}

/** Why a payload is not read. */
export interface Unreadable {
  readonly reason: string
  /** The version of the type that did not read it; null when no version helps, but another way of encoding. */
  readonly reader: number | null
}

/** Whether payloads in this encoding are read by this build. */
export const readsEncoding = (encoding: number | null): boolean => (encoding ?? ENCODING) === ENCODING

/** Makes the text of payloads of a type. */
export const writerOf = <A>(type: EventType<string, A>): ((payload: A) => Result.Result<string, InvalidPayload>) => {
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(type.schema))
  return (payload) =>
    Result.mapBoth(encode(payload, { errors: "all" }), {
      onSuccess: (json) => JSON.stringify(json),
      onFailure: ({ issue }) => new InvalidPayload({ type: type.name, problems: payloadProblems(issue) }),
    })
}

/** Reads stored payloads by a subscription's schema as it is now, also those of older versions. */
export type Reader = (stored: StoredPayload) => Result.Result<unknown, Unreadable>

/** Makes the reader of a subscription. */
export const readerOf = (subscription: Subscription): Reader => {
  const { version } = subscription
  const decode = Schema.decodeUnknownResult(Schema.toCodecJson(subscription.schema))
  const unreadable = (reason: string, reader: number | null = version) => Result.fail({ reason, reader })
  return (stored) => {
    if (!readsEncoding(stored.encoding)) {
      return unreadable(`it is in encoding ${stored.encoding}; this build reads encoding ${ENCODING}`, null)
    }
    if (subscription.kind === "event" && stored.version > version) {
      return unreadable(`it is of version ${stored.version}; this program's type is of version ${version}`)
    }
    const json = parse(stored.text)
    if (Result.isFailure(json)) return unreadable("it is not JSON")
    // A match is stored as it is sent: its event is a field of it.
    const value = subscription.kind === "match" ? (json.success as { readonly event?: unknown }).event : json.success
    return Result.mapError(decode(value, { errors: "all" }), ({ issue }) => {
      const problems = under(subscription.kind === "match" ? "event" : "payload", payloadProblems(issue))
      return { reason: problems.map(({ path, message }) => `${path}: ${message}`).join("; "), reader: version }
    })
  }
}

const parse = (text: string | null): Result.Result<unknown, null> => {
  if (text === null) return Result.fail(null)
  return Result.try({ try: () => JSON.parse(text) as unknown, catch: () => null })
}
