import { Effect, Stream } from "effect"
import type { Cursor } from "../model/cursor.ts"
import type { JsonObject } from "../model/fields.ts"
import type { MonitorDefinition, NetworkDefinition } from "../model/resource.ts"
import type { ActiveMonitor } from "../pipeline/interest-versions.ts"
import { matchEvents } from "../pipeline/matcher.ts"
import type { Egress } from "../plugin/egress.ts"
import type { SourceError } from "../plugin/error.ts"
import { SourceRefused } from "../plugin/error.ts"
import type { Plugins } from "../plugin/registry.ts"
import type { Secrets } from "../plugin/secrets.ts"
import { Refused } from "./error.ts"
import { buildSource } from "./source-runner.ts"
import type { MatchView } from "./views.ts"

/**
 * What a monitor would match in one primary, before its gate: read with a source of its own, nothing stored, nothing sent.
 *
 * @param start where the network began; null if it has not
 */
export const testMonitor = Effect.fnUntraced(function* (
  plugins: Plugins["Service"],
  network: NetworkDefinition,
  monitor: MonitorDefinition,
  { compiled, selector }: ActiveMonitor,
  primary: number,
  start: Cursor | null,
): Effect.fn.Return<ReadonlyArray<MatchView>, Refused | SourceError, Egress | Secrets> {
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const source = yield* buildSource(plugins, network).pipe(
        Effect.mapError(({ reason }) => new SourceRefused({ reason })),
      )
      const interests = { version: 1, interests: [{ id: monitor.id, selector }] }
      const begun = start === null ? {} : { start }
      const batches = yield* Stream.runCollect(source.scan({ from: primary, to: primary, interests, ...begun }))
      const events = batches.flatMap((batch) => batch.events)
      const report = matchEvents(network.id, new Map([[monitor.id, compiled]]), () => [], events, null)
      const [failure] = report.failures
      if (failure !== undefined) {
        const problems = [{ path: failure.path, message: failure.reason }]
        return yield* new Refused({ resource: `monitor "${monitor.id}"`, problems })
      }
      return report.matches.map(({ payload, cursor, time }): MatchView => {
        const match: { id: string; monitor: string; network: string; event: JsonObject } = JSON.parse(payload)
        return { ...match, cursor, time }
      })
    }),
  )
})
