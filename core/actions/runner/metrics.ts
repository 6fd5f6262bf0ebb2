import { type Context, Effect, Metric, type Scope } from "effect"

/** Bounds of the histogram of runs, in seconds: from an insert to an hour's call. */
const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600]

/** How a run ended. */
export type RunOutcome =
  | "succeeded"
  | "repeated"
  | "conflict"
  | "retried"
  | "failed"
  | "parked"
  | "overtaken"
  | "given_back"

/** What waits to be run. */
export interface Backlog {
  readonly waiting: number
  readonly oldestSeconds: number
}

const gauges = {
  waiting: ["blockwatcher_action_waiting", "Deliveries to actions that wait for a run."],
  oldestSeconds: [
    "blockwatcher_action_oldest_waiting_seconds",
    "How long the oldest delivery to an action has been due.",
  ],
} as const

/** What the runner measures. A series is made at its first use and kept, so that an update is one look-up. */
export class ActionMetrics {
  readonly #context: Context.Context<never>
  readonly #runs = new Map<string, Metric.Counter<number>>()
  readonly #seconds = new Map<string, Metric.Histogram<number>>()

  constructor(context: Context.Context<never>) {
    this.#context = context
  }

  /** Counts a run that ended. */
  ended(action: string, outcome: RunOutcome): void {
    const key = `${action} ${outcome}`
    let counter = this.#runs.get(key)
    if (counter === undefined) {
      counter = Metric.counter("blockwatcher_action_runs_total", {
        description: "Runs of actions that ended, by outcome.",
        incremental: true,
        attributes: { action, outcome },
      })
      this.#runs.set(key, counter)
    }
    counter.updateUnsafe(1, this.#context)
  }

  /** @param ms how long the action itself took */
  took(action: string, ms: number): void {
    let histogram = this.#seconds.get(action)
    if (histogram === undefined) {
      histogram = Metric.histogram("blockwatcher_action_run_seconds", {
        description: "How long runs of actions take, without their last transaction.",
        boundaries: SECONDS,
        attributes: { action },
      })
      this.#seconds.set(action, histogram)
    }
    histogram.updateUnsafe(ms / 1000, this.#context)
  }
}

/** Shows what waits, read when it is asked for, until the scope closes. */
export const exposeBacklog = (read: () => Backlog): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) =>
      (Object.keys(gauges) as Array<keyof typeof gauges>).map((name) => {
        const [id, description] = gauges[name]
        return Metric.registerUnsafe(Metric.gauge(id, { description }), context, {
          get: () => ({ value: read()[name] }),
          update: () => {},
          modify: () => {},
        })
      }),
    ),
    (registrations) => Effect.sync(() => registrations.forEach(({ remove }) => remove())),
  ).pipe(Effect.asVoid)
