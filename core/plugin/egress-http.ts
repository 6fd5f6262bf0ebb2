import { Schema } from "effect"

/**
 * A request that got no complete response: `denied` by the egress policy, not in time, broken on the way, or larger
 * than `maxBytes`. `reason` is for a person; of the URL it names the origin alone.
 */
export class HttpFailure extends Schema.TaggedError<HttpFailure>()("HttpFailure", {
  kind: Schema.Literals(["denied", "timeout", "transport", "too-large"]),
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }
}

/** One request, with the bounds of its answer. */
export interface HttpRequest {
  readonly method: "GET" | "POST"
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Covers connect, headers and body, in ms. */
  readonly timeoutMs: number
  /** The response body is read up to this many bytes. */
  readonly maxBytes: number
  /** What happens beyond `maxBytes`: fail as `too-large`, or keep the beginning. */
  readonly overflow: "fail" | "truncate"
}

/** A complete answer, or its beginning where the request asked for no more. */
export interface HttpResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Belongs to the receiver. */
  readonly body: Uint8Array
}
