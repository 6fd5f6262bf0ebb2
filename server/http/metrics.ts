import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { Blockwatcher } from "../../core/engine/blockwatcher.ts"
import { Resources } from "../../core/engine/resources.ts"

/** The text format of Prometheus, version 0.0.4. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

const state = (network: string, name: string) =>
  Metric.gauge("blockwatcher_network_state", {
    description: "1 for the state that a network is in.",
    attributes: { network, state: name },
  })

const deadLetters = (network: string) =>
  Metric.gauge("blockwatcher_dead_letters", {
    description: "Deliveries that used up their retries and are kept.",
    attributes: { network },
  })

const sinkState = (sink: string, name: string) =>
  Metric.gauge("blockwatcher_sink_state", {
    description: "1 for the state that a sink is in.",
    attributes: { sink, state: name },
  })

const owed = (network: string, sink: string) =>
  Metric.gauge("blockwatcher_owed_deliveries", {
    description: "Deliveries that a sink is owed, as of a few seconds ago; no series while it is owed none.",
    attributes: { network, sink },
  })

const owedOldest = (network: string, sink: string) =>
  Metric.gauge("blockwatcher_owed_oldest_seconds", {
    description: "How long the oldest of these waits.",
    attributes: { network, sink },
  })

/** What only the database or a view knows, in a registry of this one answer: a network that is gone leaves no series. */
const viewed = Effect.gen(function* () {
  const networks = yield* Effect.flatMap(Resources, (resources) => resources.networks)
  for (const network of networks) {
    yield* Metric.update(state(network.id, network.state), 1)
    yield* Metric.update(deadLetters(network.id), network.deadLetterCount)
  }
  const { health } = yield* Blockwatcher
  const { sinks, networks: owing } = yield* health
  for (const sink of sinks) yield* Metric.update(sinkState(sink.id, sink.state), 1)
  for (const { id, owes } of owing) {
    for (const { sink, deliveries, oldestSeconds } of owes) {
      yield* Metric.update(owed(id, sink), deliveries)
      yield* Metric.update(owedOldest(id, sink), oldestSeconds)
    }
  }
  return yield* PrometheusMetrics.format()
}).pipe(
  Effect.provideServiceEffect(
    Metric.MetricRegistry,
    Effect.sync(() => new Map()),
  ),
  // The rest is worth the most while the database is away.
  Effect.catchTag("StorageError", () => Effect.succeed("")),
)

/** Everything that is measured, as Prometheus reads it. */
export const metricsBody = Effect.zipWith(PrometheusMetrics.format(), viewed, (live, rest) => live + rest)
