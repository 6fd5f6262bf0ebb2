import { Effect, Schema } from "effect"
import type { SinkEvent } from "../model/sink-event.ts"
import type { DeliveryError } from "../plugin/error.ts"
import { type Delivery, SinkPlugin } from "../plugin/sink.ts"

/** A sink that is a function of the host program. It is known by its id alone and lives as long as the runtime. */
export interface HostSink {
  readonly id: string
  readonly deliver: (event: SinkEvent, delivery: Delivery) => Effect.Effect<unknown, DeliveryError>
  /** Bounds one call, in ms; 30,000 unless set. */
  readonly timeoutMs?: number
  /** As of any sink; the defaults unless set. */
  readonly retry?: { readonly maxAttempts?: number; readonly initialBackoffMs?: number; readonly maxBackoffMs?: number }
}

/** A host program's function, or the definition of a sink of a plugin. */
export const isHostSink = (sink: object): sink is HostSink => "deliver" in sink && typeof sink.deliver === "function"

const moduleOf = ({ id }: HostSink): string => `host:${id}`

/** The plugin that the definition of a host sink names: a runtime without the function shows the sink as FAILED. */
export const hostPlugin = (sink: HostSink): SinkPlugin =>
  SinkPlugin.make({
    name: moduleOf(sink),
    config: Schema.Struct({}),
    make: () =>
      Effect.succeed({
        deliver: (event, delivery) => Effect.asVoid(sink.deliver(event, delivery)),
        timeoutMs: sink.timeoutMs ?? 30_000,
      }),
  })

export const hostDefinition = (sink: HostSink): unknown => ({
  id: sink.id,
  module: moduleOf(sink),
  config: {},
  ...(sink.retry === undefined ? {} : { retry: sink.retry }),
})
