import { Effect } from "effect"
import type { Catalog } from "./catalog.ts"
import type { SinkRegistry } from "./sink-registry.ts"

/** Warns of sinks that are to get digests, by their own policy or by a gated monitor, and cannot send them as they should. */
export const warnOfDigests = (
  catalog: Catalog,
  sinks: SinkRegistry,
  /** Which sinks are looked at. */
  isConcerned: (sink: string) => boolean,
): Effect.Effect<void> =>
  Effect.forEach(
    sinks.all().filter(({ definition }) => isConcerned(definition.id)),
    ({ definition: { id, aggregate } }) => {
      const problem = sinks.handle(id).runtime?.sink.noDigests
      if (problem === undefined) return Effect.void
      const gated = [...catalog.monitors.values()]
        .map(({ stored }) => stored.definition)
        .filter(({ gate, enabled, sinks: targets }) => gate?.type === "threshold" && enabled && targets.includes(id))
      const causes = [
        ...(aggregate === null ? [] : ["it aggregates"]),
        ...gated.map((monitor) => `monitor ${monitor.id} has a gate`),
      ]
      if (causes.length === 0) return Effect.void
      return Effect.logWarning(`sink ${id} is to get digests (${causes.join(", ")}), but its ${problem}`)
    },
    { discard: true },
  )
