import { Clock, Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { Actions } from "../../core/actions/actions.ts"
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

const actionDeliveries = (attributes: { readonly store: string; readonly action: string; readonly state: string }) =>
  Metric.gauge("blockwatcher_action_deliveries", {
    description:
      "Deliveries to actions that are not over or need someone, counted up to 10000 a series; no series where there are none.",
    attributes,
  })

const actionOldest = (store: string, action: string) =>
  Metric.gauge("blockwatcher_action_oldest_seconds", {
    description: "How long ago the oldest delivery to an action came that waits.",
    attributes: { store, action },
  })

/** In a registry of this one answer: what is gone leaves no series. */
const formatted = <E, R>(update: Effect.Effect<void, E, R>): Effect.Effect<string, E, R> =>
  Effect.andThen(update, PrometheusMetrics.format()).pipe(
    Effect.provideServiceEffect(
      Metric.MetricRegistry,
      Effect.sync(() => new Map()),
    ),
  )

/** What only the database or a view knows of networks and sinks. */
const ofNetworks = Effect.gen(function* () {
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
})

/** What only the event stores know of actions. */
const ofActions = Effect.gen(function* () {
  const { overview } = yield* Actions
  const now = yield* Clock.currentTimeMillis
  for (const { name, counts } of yield* overview(["waiting", "running", "failed", "parked"])) {
    for (const { store, state, deliveries, oldest } of counts) {
      yield* Metric.update(actionDeliveries({ store, action: name, state }), deliveries)
      if (state === "waiting") yield* Metric.update(actionOldest(store, name), Math.max(0, now - oldest) / 1000)
    }
  }
})

/** Everything that is measured, as Prometheus reads it. The rest is worth the most while a database is away. */
export const metricsBody = Effect.map(
  Effect.all([
    PrometheusMetrics.format(),
    Effect.catchTag(formatted(ofNetworks), "StorageError", () => Effect.succeed("")),
    Effect.catchTag(formatted(ofActions), "StoreFailed", () => Effect.succeed("")),
  ]),
  (parts) => parts.join(""),
)
