import { compareCursors, type Cursor } from "../model/cursor.ts"
import type { Gate } from "../model/policy.ts"
import type { NewMatch } from "./storage.ts"

/** A hit of a gated monitor on its way into a batch. */
export type GatedMatch = NewMatch & Required<Pick<NewMatch, "gate">> & { readonly time: number }

export const isGated = (match: NewMatch): match is GatedMatch =>
  match.gate !== undefined && match.failure === undefined && match.time !== null

/** Names the session that a hit belongs to. */
export const sessionOf = ({ monitor, revision, gate: { key } }: GatedMatch): string =>
  JSON.stringify([monitor, revision, key])

/** A hit of a gated monitor, as its session counts it. */
export interface GateHit {
  /** Its row. */
  readonly pk: number
  readonly id: string
  readonly cursor: Cursor
  /** Event time, in ms since 1970. */
  readonly time: number
}

/** What a gate makes of the hits of one key, in one transaction. Pure: rows are read before and written behind it. */
export interface GateSession {
  /**
   * Takes a hit: answers the members of the emission that it completes, in cursor order, or whether it is to be recorded as
   * held, or not at all.
   */
  readonly add: (hit: GateHit) => ReadonlyArray<GateHit> | "held" | "discarded"
}

const inOrder = (a: GateHit, b: GateHit): number =>
  compareCursors(a.cursor, b.cursor) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/**
 * The hits that make an emission with the last of them, if there are `count` whose times span at most the window: those from
 * the earliest time on that is enough.
 *
 * @param hits in cursor order
 */
const enough = (
  hits: ReadonlyArray<GateHit>,
  { count, windowMs }: Gate & { readonly type: "threshold" },
): ReadonlyArray<GateHit> | null => {
  const newest = hits.at(-1)!.time
  const near = hits.filter(({ time }) => Math.abs(newest - time) <= windowMs)
  if (near.length < count) return null
  if (near.every(({ time }) => time <= newest)) return near
  // Times may go back: what is near on both sides of the newest spans more than the window.
  const times = near.map(({ time }) => time).toSorted((a, b) => a - b)
  const from = times.find((time, i) => time <= newest && times[i + count - 1]! - time <= windowMs)
  return from === undefined ? null : near.filter(({ time }) => from <= time && time - from <= windowMs)
}

/**
 * `threshold`: a hit is counted with the earlier ones that no emission consumed; when `count` of them span at most the window
 * they become one emission. A hit that is found late is folded at its cursor: it may complete
 * the count of a hit that was held behind it.
 *
 * @param held hits that no emission consumed, in any order
 */
const threshold = (gate: Gate & { readonly type: "threshold" }, held: ReadonlyArray<GateHit>): GateSession => {
  let open = held.toSorted(inOrder)
  return {
    add: (hit) => {
      const at = open.findLastIndex((earlier) => inOrder(earlier, hit) < 0) + 1
      open.splice(at, 0, hit)
      for (let i = at; i < open.length; i++) {
        const members = enough(open.slice(0, i + 1), gate)
        if (members === null) continue
        const consumed = new Set(members)
        open = open.filter((other) => !consumed.has(other))
        return members
      }
      return "held"
    },
  }
}

/**
 * `max_once`: a hit opens a window, which begins at its time, and is emitted; those in a window that is open are left out.
 *
 * @param openers hits that opened a window
 */
const maxOnce = ({ windowMs }: Gate, openers: ReadonlyArray<GateHit>): GateSession => {
  const opened = openers.map(({ time }) => time)
  return {
    add: (hit) => {
      if (opened.some((time) => time <= hit.time && hit.time < time + windowMs)) return "discarded"
      opened.push(hit.time)
      return [hit]
    },
  }
}

/**
 * The session of a key.
 *
 * @param recorded of `threshold` the hits that are held, of `max_once` those that opened a window; of times that `reachOf`
 *   names
 */
export const gateSession = (gate: Gate, recorded: ReadonlyArray<GateHit>): GateSession =>
  gate.type === "threshold" ? threshold(gate, recorded) : maxOnce(gate, recorded)

/** The event times of recorded hits that hits of these times may meet, both ends included. */
export const reachOf = (gate: Gate, times: ReadonlyArray<number>): { readonly from: number; readonly to: number } => {
  const first = Math.min(...times)
  const last = Math.max(...times)
  // A late hit may complete the count of a hit behind it, whose window reaches as far again.
  const windows = gate.type === "threshold" ? 2 : 1
  return { from: first - windows * gate.windowMs, to: last + windows * gate.windowMs }
}
