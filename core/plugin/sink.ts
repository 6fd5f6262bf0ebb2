import type { Effect, Schema, Scope } from "effect"
import type { SinkEvent } from "../model/sink-event.ts"
import type { Egress } from "./egress.ts"
import type { DeliveryError, PluginRefused } from "./error.ts"
import type { Secrets } from "./secrets.ts"

/** What stands around an event that is being delivered. */
export interface Delivery {
  /** The stable id of this delivery, the same on every attempt; receivers deduplicate on it. */
  readonly id: string
  /** The event as canonical JSON: the same bytes on every attempt. */
  readonly body: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Set on a replay by hand, so that the receiver can tell it from a repeat. */
  readonly nonce: string | null
}

export interface Sink {
  /** Delivers one event, or fails with the class of the failure. Retries, dead letters and metrics belong to core. */
  readonly deliver: (event: SinkEvent, delivery: Delivery) => Effect.Effect<void, DeliveryError>
  /** The longest that one attempt can take, in ms; core ends it then as `Transient`. */
  readonly timeoutMs: number
  /** Set when digests will not be sent as they should: why, and what to do. Core warns when the sink is to get any. */
  readonly noDigests?: string
}

export interface SinkPlugin<Config = any> {
  readonly kind: "sink"
  readonly name: string
  readonly config: Schema.Codec<Config, any>
  /** Paths in the config that are masked when shown: `url`, `headers.*`. */
  readonly sensitive: ReadonlyArray<string>
  /** Builds the sink. Validates everything that can be judged now; sends nothing. */
  readonly make: (config: Config) => Effect.Effect<Sink, PluginRefused, Scope.Scope | Egress | Secrets>
}

/** Defines a sink plugin; the default export of its file. */
export const SinkPlugin = {
  make: <Config>(
    definition: Pick<SinkPlugin<Config>, "name" | "config" | "make"> & Partial<Pick<SinkPlugin<Config>, "sensitive">>,
  ): SinkPlugin<Config> => ({ kind: "sink", sensitive: [], ...definition }),
}

export type Plugin = SinkPlugin | import("./source.ts").SourcePlugin
