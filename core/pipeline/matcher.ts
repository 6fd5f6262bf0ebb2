import type { Cursor } from "../model/cursor.ts"
import { isAfter } from "../model/cursor.ts"
import type { Fields, JsonObject } from "../model/fields.ts"
import type { Gate } from "../model/policy.ts"
import { encodePayload } from "../model/sink-event.ts"
import type { SourceEvent } from "../plugin/source.ts"
import type { CompiledKey } from "../predicate/key.ts"
import { type CompiledPredicate, PredicateFailure } from "../predicate/predicate.ts"
import type { NewMatch } from "../storage/storage.ts"

/** A monitor as the pipeline runs it: compiled once for each of its revisions. */
export interface CompiledMonitor {
  readonly id: string
  readonly matchRevision: string
  readonly predicate: CompiledPredicate | null
  readonly gate: CompiledGate | null
  readonly render: (fields: Fields) => JsonObject
  readonly matchId: (cursor: Cursor, index: number, fields: Fields) => string
}

/** A gate with the key of its hits, each of which has a count or window of its own. */
export interface CompiledGate extends CompiledKey {
  readonly gate: Gate
}

/** The sinks that a monitor's matches go to now, or null if the monitor is gone or disabled by now. */
export type SinksOf = (monitor: string) => ReadonlyArray<string> | null

export interface MatchReport {
  readonly matches: Array<NewMatch>
  /** Events that did not decode, one reason each at most. */
  readonly undecodable: Array<string>
  /** Predicates that failed, and hits that their gate cannot judge. */
  readonly failures: Array<MatchFailure>
}

/** Why it is not known whether an event is a match of a monitor. */
export interface MatchFailure {
  readonly monitor: string
  /** The field of the monitor that failed. */
  readonly path: "predicate" | "gate" | "gate.by"
  readonly reason: string
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** A failure in the words that its monitor shows. */
export const failureText = ({ path, reason }: Omit<MatchFailure, "monitor">): string =>
  path === "predicate" ? reason : `${path}: ${reason}`

/** Why a delivery of an event that failed is dead. A gate's key is an expression like the predicate. */
const deadReason = (failure: Omit<MatchFailure, "monitor">): string =>
  `permanent: ${failure.path === "gate" ? "" : "predicate: "}${failureText(failure)}`

/** What becomes of an event: left out, or minted: as a hit of its gate if there is one, or with what failed. */
type Verdict = Pick<NewMatch, "gate"> | Omit<MatchFailure, "monitor">

const judge = ({ predicate, gate }: CompiledMonitor, fields: Fields, time: number | null): Verdict | null => {
  let path: MatchFailure["path"] = "predicate"
  try {
    if (predicate !== null && !predicate.evaluate(fields)) return null
    if (gate === null) return PLAIN
    if (time === null) return { path: "gate", reason: "the event has no time" }
    path = "gate.by"
    return { gate: { gate: gate.gate, key: gate.keyOf(fields) } }
  } catch (error) {
    if (!(error instanceof PredicateFailure)) throw error
    return { path, reason: error.message }
  }
}

const PLAIN: Verdict = {}

/**
 * Matches events against the monitors of one version. An event that does not decode is skipped and reported; a
 * predicate or a gate's key that fails is never 'false': its event is minted with the failure.
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
      const verdict = judge(monitor, fields, event.time)
      if (verdict === null) continue
      if ("path" in verdict) report.failures.push({ monitor: monitor.id, ...verdict })
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
          ...("path" in verdict ? { failure: deadReason(verdict) } : verdict),
        })
      } catch (error) {
        // Its fields are not of the types that its selector yields.
        skip(error)
      }
    }
  }
  return report
}
