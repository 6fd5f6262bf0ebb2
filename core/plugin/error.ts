import { Schema } from "effect"
import { Problem } from "../model/problem.ts"

/** A plugin cannot be built from its config: a missing secret, a wrong address. A retry does not mend it. */
export class PluginRefused extends Schema.TaggedError<PluginRefused>()("PluginRefused", {
  reason: Schema.String,
  /** The same for each field, where it is known; a `path` is that in the config. */
  problems: Schema.optionalKey(Schema.Array(Problem)),
}) {
  /** A refusal for problems of fields. */
  static of(problems: ReadonlyArray<Problem>): PluginRefused {
    const reason = problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")
    return new PluginRefused({ reason, problems })
  }

  override get message() {
    return this.reason
  }
}

/** The source cannot read its feed right now; the network shows `reason` as its `error` and tries again for ever. */
export class SourceUnavailable extends Schema.TaggedError<SourceUnavailable>()("SourceUnavailable", {
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }
}

/** The source can never work as it is configured (another chain id): the network is FAILED until something changes. */
export class SourceRefused extends Schema.TaggedError<SourceRefused>()("SourceRefused", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

export type SourceError = SourceUnavailable | SourceRefused

/** A delivery failed in a way that another attempt may mend: a time-out, a lost connection, a 5xx answer. */
export class Transient extends Schema.TaggedError<Transient>()("Transient", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** The receiver asks for fewer deliveries; `retryAfterMs`, if it said so, is the least wait before the next attempt. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  reason: Schema.String,
  retryAfterMs: Schema.NullOr(Schema.Number),
}) {
  override get message() {
    return this.reason
  }
}

/** No further attempt of this delivery can succeed. `gone`: the receiver wants nothing more at all (HTTP 410). */
export class Permanent extends Schema.TaggedError<Permanent>()("Permanent", {
  reason: Schema.String,
  gone: Schema.optionalKey(Schema.Boolean),
}) {
  override get message() {
    return this.reason
  }
}

/** The event is too large for the receiver: a digest is split, a single match is permanent. */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

export type DeliveryError = Transient | RateLimited | Permanent | TooLarge
