import type { Cursor } from "../model/cursor.ts"
import { isAfter } from "../model/cursor.ts"
import type { Fields, JsonObject } from "../model/fields.ts"
import { encodePayload } from "../model/sink-event.ts"
import type { SourceEvent } from "../plugin/source.ts"
import { type CompiledPredicate, PredicateFailure } from "../predicate/predicate.ts"
import type { NewMatch } from "../storage/storage.ts"

/** A monitor as the pipeline runs it: compiled once for each of its revisions. */
export interface CompiledMonitor {
  readonly id: string
  readonly matchRevision: string
  readonly predicate: CompiledPredicate | null
  readonly render: (fields: Fields) => JsonObject
  readonly matchId: (cursor: Cursor, index: number, fields: Fields) => string
}

/** The sinks that a monitor's matches go to now, or null if the monitor is gone or disabled by now. */
export type SinksOf = (monitor: string) => ReadonlyArray<string> | null

export interface MatchReport {
  readonly matches: Array<NewMatch>
  /** Events that did not decode, one reason each at most. */
  readonly undecodable: Array<string>
  /** Predicates that failed, by monitor. */
  readonly failures: Array<{ readonly monitor: string; readonly reason: string }>
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Matches events against the monitors of one version. An event that does not decode is skipped and reported; a
 * predicate that fails is never 'false': its event is minted with the failure.
 *
 * @param after events at or before it were processed already and are left out
 */
export const matchEvents = (
  network: string,
  monitors: ReadonlyMap<string, CompiledMonitor>,
  sinksOf: SinksOf,
  events: ReadonlyArray<SourceEvent>,
  after: Cursor | null,
): MatchReport => {
  const report: MatchReport = { matches: [], undecodable: [], failures: [] }
  // Events come in order: once one lies behind `after`, all do.
  const first = after === null ? 0 : events.findIndex(({ cursor }) => isAfter(cursor, after))
  if (first === -1) return report
  for (const event of first === 0 ? events : events.slice(first)) {
    let fields: Fields | undefined
    const skip = (error: unknown) => report.undecodable.push(describe(error))
    for (const interest of event.interests) {
      const monitor = monitors.get(interest)
      if (monitor === undefined) continue
      if (fields === undefined) {
        try {
          fields = event.fields()
        } catch (error) {
          skip(error)
          break
        }
      }
      let failure: string | undefined
      if (monitor.predicate !== null) {
        try {
          if (!monitor.predicate.evaluate(fields)) continue
        } catch (error) {
          if (!(error instanceof PredicateFailure)) throw error
          failure = error.message
          report.failures.push({ monitor: monitor.id, reason: failure })
        }
      }
      const sinks = sinksOf(monitor.id)
      if (sinks === null) continue
      try {
        const id = monitor.matchId(event.cursor, event.index, fields)
        const rendered = monitor.render(fields)
        report.matches.push({
          id,
          monitor: monitor.id,
          revision: monitor.matchRevision,
          cursor: event.cursor,
          time: event.time,
          payload: encodePayload({ id, monitor: monitor.id, network, event: rendered }),
          event: rendered,
          sinks,
          ...(failure === undefined ? {} : { failure: `permanent: predicate: ${failure}` }),
        })
      } catch (error) {
        // Its fields are not of the types that its selector yields.
        skip(error)
      }
    }
  }
  return report
}
