import { Context, Effect, Metric } from "effect"
import type { DeliveryRow, NewMatch, Outcome } from "../storage/storage.ts"
import type { WorkItem } from "./work-item.ts"

/** Bounds of the histograms, in seconds: from a chain that is followed at its head to one that is caught up with. */
const AGES = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86_400]

type Attributes = Readonly<Record<string, string>>

const counters = {
  events: ["blockwatcher_events_total", "Events that the source handed over."],
  undecodable: ["blockwatcher_undecodable_events_total", "Events that did not decode and were skipped."],
  matches: ["blockwatcher_matches_total", "Matches that were minted."],
  predicateFailures: ["blockwatcher_predicate_failures_total", "Events on which a predicate failed."],
  deliveries: ["blockwatcher_deliveries_total", "Deliveries that ended, by kind and outcome."],
  failedAttempts: ["blockwatcher_delivery_attempts_failed_total", "Attempts that failed and were followed by another."],
  throttled: ["blockwatcher_deliveries_throttled_total", "Deliveries that a throttle refused."],
  digests: ["blockwatcher_digests_total", "Digests that were delivered."],
  gateHits: ["blockwatcher_gate_hits_total", "Hits of gated monitors: their gate decides which become matches."],
  invalidations: ["blockwatcher_invalidations_total", "Invalidations that were carried out."],
  ended: ["blockwatcher_matches_ended_total", "Matches that were taken back."],
  rewindsRefused: ["blockwatcher_rewinds_refused_total", "Invalidations that left the checkpoint where it was."],
  journalGap: ["blockwatcher_journal_gap_total", "Invalidations that the journal did not reach back to."],
  faults: ["blockwatcher_pipeline_faults_total", "Pipelines that broke and were built again."],
} as const

const ages = {
  seen: ["blockwatcher_event_seen_seconds", "Age of the newest event of a batch when it was read."],
  matched: ["blockwatcher_event_matched_seconds", "Age of the newest event of a group of matches when it was stored."],
  delivered: ["blockwatcher_event_delivered_seconds", "Age of an event when its match was delivered."],
} as const

const gauges = {
  checkpoint: ["blockwatcher_checkpoint", "Primary (block) up to which everything is finished."],
  head: ["blockwatcher_head", "Newest primary (block) that the source has seen."],
  inFlight: ["blockwatcher_in_flight_events", "Events that were read and are not finished."],
  waiting: ["blockwatcher_waiting_seconds", "How long the network has been waiting for a sink; 0 while it does not."],
} as const

type Count = Metric.Counter<number>
type Ages = Metric.Histogram<number>

/**
 * What a network measures about itself: Effect metrics with the label `network`, and `monitor`, `sink`, `kind` and
 * `outcome` where they fit. A series is made at its first use and kept, so that an update is one look-up.
 */
export class NetworkMetrics {
  readonly #context: Context.Context<never>
  readonly #network: string
  readonly #counts = new Map<string, Count>()
  readonly #ages = new Map<string, Ages>()

  constructor(network: string, context: Context.Context<never>) {
    this.#network = network
    this.#context = context
    // Alerts watch for the first one: the series is there before it.
    for (const name of ["invalidations", "rewindsRefused", "journalGap", "faults"] as const) this.count(name, 0)
  }

  count(name: keyof typeof counters, by: number, labels: Attributes = {}): void {
    const key = `${name} ${Object.values(labels).join(" ")}`
    let counter = this.#counts.get(key)
    if (counter === undefined) {
      const [id, description] = counters[name]
      const attributes = { network: this.#network, ...labels }
      counter = Metric.counter(id, { description, incremental: true, attributes })
      this.#counts.set(key, counter)
    }
    counter.updateUnsafe(by, this.#context)
  }

  /** @param time event time in ms since 1970; nothing is measured without one */
  age(name: keyof typeof ages, time: number | null | undefined, now: number, labels: Attributes = {}): void {
    if (time == null) return
    const key = `${name} ${Object.values(labels).join(" ")}`
    let histogram = this.#ages.get(key)
    if (histogram === undefined) {
      const [id, description] = ages[name]
      const attributes = { network: this.#network, ...labels }
      histogram = Metric.histogram(id, { description, boundaries: AGES, attributes })
      this.#ages.set(key, histogram)
    }
    histogram.updateUnsafe(Math.max(0, now - time) / 1000, this.#context)
  }

  /** Counts deliveries that are over, by sink, kind and outcome. */
  settled(deliveries: ReadonlyArray<{ readonly item: WorkItem; readonly outcome: Outcome }>, now: number): void {
    for (const [sink, ofSink] of Map.groupBy(deliveries, ({ item }) => item.row.sink)) {
      const ends = Map.groupBy(ofSink, ({ item, outcome }) => `${item.row.kind} ${outcome.state}`)
      for (const alike of ends.values()) {
        const { item, outcome } = alike[0]!
        this.count("deliveries", alike.length, { sink, kind: item.row.kind, outcome: outcome.state })
      }
      for (const { item, outcome } of ofSink) {
        if (outcome.state === "delivered" && item.row.kind === "match")
          this.age("delivered", item.row.time, now, { sink })
      }
    }
  }

  /** Counts by monitor what is minted: matches, and hits of gates with the matches that they became. */
  minted(matches: ReadonlyArray<NewMatch>, rows: ReadonlyArray<DeliveryRow>, now: number): void {
    const counts = { matches: new Map<string, number>(), gateHits: new Map<string, number>() }
    const count = (name: keyof typeof counts, monitor: string) =>
      counts[name].set(monitor, (counts[name].get(monitor) ?? 0) + 1)
    for (const { monitor, gate } of matches) count(gate === undefined ? "matches" : "gateHits", monitor)
    if (counts.gateHits.size > 0) {
      const emitted = new Map(rows.map((row) => [`${row.matchId} ${row.life}`, row.monitor]))
      for (const monitor of emitted.values()) if (counts.gateHits.has(monitor)) count("matches", monitor)
    }
    for (const name of ["matches", "gateHits"] as const) {
      for (const [monitor, by] of counts[name]) this.count(name, by, { monitor })
    }
    this.age("matched", matches.at(-1)?.time, now)
  }
}

/** Shows how long the oldest row of a durable buffer waits, read when it is asked for, until the scope closes. */
export const exposeBuffer = (network: string, sink: string, seconds: () => number) =>
  Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) =>
      Metric.registerUnsafe(
        Metric.gauge("blockwatcher_buffer_oldest_seconds", {
          description: "How long the oldest delivery waits in a durable buffer.",
          attributes: { network, sink },
        }),
        context,
        { get: () => ({ value: seconds() }), update: () => {}, modify: () => {} },
      ),
    ),
    (registration) => Effect.sync(() => registration.remove()),
  )

/** Shows present values of a network, read when they are asked for, until the scope closes. */
export const exposeGauges = (network: string, read: () => { readonly [name in keyof typeof gauges]: number | null }) =>
  Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) =>
      (Object.keys(gauges) as Array<keyof typeof gauges>).map((name) => {
        const [id, description] = gauges[name]
        return Metric.registerUnsafe(Metric.gauge(id, { description, attributes: { network } }), context, {
          get: () => ({ value: read()[name] ?? Number.NaN }),
          update: () => {},
          modify: () => {},
        })
      }),
    ),
    (registrations) => Effect.sync(() => registrations.forEach(({ remove }) => remove())),
  )
