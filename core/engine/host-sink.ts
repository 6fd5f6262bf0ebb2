import { Effect, Schema } from "effect"
import type { SinkDefinition } from "../model/resource.ts"
import type { SinkEvent } from "../model/sink-event.ts"
import type { DeliveryError } from "../plugin/error.ts"
import { type Delivery, SinkPlugin } from "../plugin/sink.ts"

/** The delivery policies of a sink as they are written: what is left out has its default. */
type Policies = Pick<typeof SinkDefinition.Encoded, "retry" | "throttle" | "aggregate" | "concurrency" | "buffer">

/**
 * A sink that is a function of the host program, with the policies of any sink. It is known by its id alone and lives as
 * long as the runtime.
 */
export interface HostSink extends Policies {
  readonly id: string
  readonly deliver: (event: SinkEvent, delivery: Delivery) => Effect.Effect<unknown, DeliveryError>
  /** Bounds one call, in ms; 30,000 unless set. */
  readonly timeoutMs?: number
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

export const hostDefinition = (sink: HostSink): unknown => {
  const { deliver: _, timeoutMs: __, ...definition } = sink
  return { ...definition, module: moduleOf(sink), config: {} }
}
