import type { Catalog } from "./catalog.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/** Whether a network's source may run: `broken` needs a person, `waiting` ends with the next change that mends it. */
export type Readiness =
  /** `without`: its sinks that are FAILED and hold it up no more, with the reason. */
  | { readonly _tag: "Ready"; readonly without: ReadonlyArray<string> }
  | { readonly _tag: "Waiting"; readonly reason: string; readonly idle: boolean }
  | { readonly _tag: "Broken"; readonly reason: string }

/**
 * A source does not run without an enabled monitor, into a sink that is FAILED, or past a monitor that does not
 * compile: matching without it would miss what it watches for. A FAILED sink that is paused or has a durable buffer holds
 * nothing up: what it is owed dies replayable, or rests.
 */
export const readinessOf = (catalog: Catalog, sinks: SinkRegistry, network: string): Readiness => {
  const monitors = catalog.enabledMonitorsOf(network)
  const broken = monitors.flatMap(({ stored, active }) =>
    active._tag === "Success"
      ? []
      : [`monitor ${stored.definition.id}: ${active.failure.map((p) => `${p.path}: ${p.message}`).join("; ")}`],
  )
  if (broken.length > 0) return { _tag: "Broken", reason: broken.join("; ") }
  if (monitors.length === 0) return { _tag: "Waiting", reason: "waits for an enabled monitor", idle: true }
  const without: Array<string> = []
  for (const sink of new Set(monitors.flatMap(({ stored }) => stored.definition.sinks))) {
    const { error, paused, isDurable } = sinks.handle(sink)
    if (error === null) continue
    if (paused === null && !isDurable) {
      const reason = `waits for sink ${sink}: ${error}; pauseSink lets the network go on, with what the sink is owed kept as dead letters`
      return { _tag: "Waiting", reason, idle: false }
    }
    const what = isDurable ? "waits in its durable buffer" : "is kept as dead letters"
    without.push(`sink ${sink} is FAILED (${error}): what it is owed ${what}`)
  }
  return { _tag: "Ready", without }
}
