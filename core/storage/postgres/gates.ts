import { Effect } from "effect"
import type { Cursor } from "../../model/cursor.ts"
import { newestOf } from "../emission.ts"
import { type GatedMatch, type GateHit, type GateSession, gateSession, isGated, reachOf, sessionOf } from "../gate.ts"
import type { NewMatch } from "../storage.ts"
import { QueryFailed, SERIALIZATION_FAILURE } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

type SessionTuple = readonly [place: number, pk: number, id: string, primary: number, secondary: number, time: number]

/** A hit on its way in; `kept` is the cursor of the newest member of the emission that consumed it. */
interface RecordedHit {
  readonly pk: number
  readonly match: GatedMatch
  kept: Cursor | null
}

/** Hits that are not recorded yet, of matches that would open a life. */
const unrecorded = Effect.fnUntraced(function* (
  { session, network }: Group,
  gated: ReadonlyArray<GatedMatch>,
): Effect.fn.Return<ReadonlyArray<GatedMatch>, QueryFailed> {
  if (gated.length === 0) return []
  const recorded = yield* session.all<readonly [place: number]>(sql.recordedHits, [
    network.id,
    gated.map(({ cursor }) => cursor.primary),
    gated.map(({ cursor }) => cursor.secondary),
    gated.map(({ monitor }) => monitor),
    gated.map(({ id }) => id),
  ])
  const places = new Set(recorded.map(([place]) => place - 1))
  return gated.filter((_, i) => !places.has(i))
})

/** The revisions that the monitors of hits have now; none of one that is gone. */
const revisionsOf = ({ session, network }: Group, hits: ReadonlyArray<GatedMatch>) =>
  Effect.map(
    session.all<readonly [monitor: string, revision: string]>(sql.revisions, [
      network.id,
      [...new Set(hits.map(({ monitor }) => monitor))],
    ]),
    (found) => new Map(found),
  )

/**
 * The sessions that the hits belong to, with the recorded hits that these may meet.
 *
 * @param isPresent hits of another revision meet nothing that is recorded
 */
const openSessions = Effect.fnUntraced(function* (
  { session, network }: Group,
  hits: ReadonlyArray<GatedMatch>,
  isPresent: (hit: GatedMatch) => boolean,
): Effect.fn.Return<ReadonlyMap<string, GateSession>, QueryFailed> {
  const all = [...Map.groupBy(hits, sessionOf)]
  const sessions = new Map(all.map(([name, [first]]) => [name, gateSession(first!.gate.gate, [])]))
  const recording = all.filter(([, [first]]) => isPresent(first!))
  if (recording.length === 0) return sessions
  const keyed = recording.map(([name, [first, ...rest]]) => ({
    name,
    ...first!,
    reach: reachOf(
      first!.gate.gate,
      [first!, ...rest].map(({ time }) => time),
    ),
  }))
  const found = yield* session.all<SessionTuple>(sql.sessionHits, [
    network.id,
    keyed.map(({ monitor }) => monitor),
    keyed.map(({ revision }) => revision),
    keyed.map(({ gate }) => gate.key),
    keyed.map(({ gate }) => (gate.gate.type === "threshold" ? 0 : 1)),
    keyed.map(({ reach }) => reach.from),
    keyed.map(({ reach }) => reach.to),
  ])
  const recorded = Map.groupBy(found, ([place]) => place - 1)
  keyed.forEach(({ name, gate }, i) => {
    const ofKey = (recorded.get(i) ?? []).map(([, pk, id, primary, secondary, time]): GateHit => ({
      pk,
      id,
      cursor: { primary, secondary },
      time,
    }))
    sessions.set(name, gateSession(gate.gate, ofKey))
  })
  return sessions
})

const addHits = (
  { session, network }: Group,
  hits: ReadonlyArray<RecordedHit>,
): Effect.Effect<unknown, QueryFailed> => {
  const matches = hits.map(({ match }) => match)
  const kept = hits.map((hit) => hit.kept ?? hit.match.cursor)
  return session.run(sql.addHits, [
    network.id,
    hits.map(({ pk }) => pk),
    matches.map(({ monitor }) => monitor),
    matches.map(({ revision }) => revision),
    matches.map(({ gate }) => gate.key),
    matches.map(({ id }) => id),
    matches.map(({ cursor }) => cursor.primary),
    matches.map(({ cursor }) => cursor.secondary),
    matches.map(({ time }) => time),
    matches.map(({ gate }) => gate.gate.windowMs),
    hits.map((hit) => (hit.kept === null ? 0 : 1)),
    kept.map(({ primary }) => primary),
    kept.map(({ secondary }) => secondary),
    matches.map(({ payload }) => payload),
  ])
}

/**
 * Marks hits of earlier batches as consumed; answers their payloads. A monitor that just left the network may take its hits
 * with it: then the transaction is run again.
 */
const consume = Effect.fnUntraced(function* (
  { session }: Group,
  consumed: ReadonlyMap<number, Cursor>,
): Effect.fn.Return<ReadonlyMap<number, string>, QueryFailed> {
  if (consumed.size === 0) return new Map()
  const kept = [...consumed.values()]
  const payloads = new Map(
    yield* session.all<readonly [pk: number, payload: string]>(sql.consumeHits, [
      [...consumed.keys()],
      kept.map(({ primary }) => primary),
      kept.map(({ secondary }) => secondary),
    ]),
  )
  return payloads.size === consumed.size
    ? payloads
    : yield* new QueryFailed({ code: SERIALIZATION_FAILURE, reason: "hits of a gate were deleted meanwhile" })
})

/**
 * Records the hits among the matches and puts in the place of each what it makes its gate emit: the members, in cursor
 * order. Other matches stay, each alone. Hits of another revision than the monitor has now are folded among themselves and
 * leave no rows, which nobody would drop.
 *
 * @param isNew whether a match would open a life: what stands is no hit
 */
export const passGates = Effect.fnUntraced(function* (
  group: Group,
  matches: ReadonlyArray<NewMatch>,
  isNew: (match: NewMatch) => boolean,
): Effect.fn.Return<ReadonlyArray<ReadonlyArray<NewMatch>>, QueryFailed> {
  const hits = new Set(yield* unrecorded(group, matches.filter(isGated).filter(isNew)))
  const passing = matches.filter((match) => !isGated(match) || hits.has(match))
  if (hits.size === 0) return passing.map((match) => [match])
  const revisions = yield* revisionsOf(group, [...hits])
  const isPresent = ({ monitor, revision }: GatedMatch) => revisions.get(monitor) === revision
  const sessions = yield* openSessions(group, [...hits], isPresent)
  const pks = (yield* group.take("hit", hits.size)).values()
  const arrived = new Map<number, RecordedHit>()
  const consumed = new Map<number, Cursor>()

  const fold = (match: GatedMatch): ReadonlyArray<GateHit> => {
    const hit: GateHit = { pk: pks.next().value!, id: match.id, cursor: match.cursor, time: match.time }
    const end = sessions.get(sessionOf(match))!.add(hit)
    if (end === "discarded") return []
    arrived.set(hit.pk, { pk: hit.pk, match, kept: null })
    if (end === "held") return []
    const kept = newestOf(end)
    for (const { pk } of end) {
      const here = arrived.get(pk)
      if (here === undefined) consumed.set(pk, kept)
      else here.kept = kept
    }
    return end
  }

  const emissions = passing.map((match) => ({ match, members: isGated(match) ? fold(match) : null }))
  const recording = [...arrived.values()].filter(({ match }) => isPresent(match))
  if (recording.length > 0) yield* addHits(group, recording)
  const payloads = yield* consume(group, consumed)

  /** The member as a match: what it was when it was recorded, for the sinks of now. */
  const member = ({ pk, id, cursor, time }: GateHit, { monitor, revision, sinks }: NewMatch): NewMatch =>
    arrived.get(pk)?.match ?? { id, monitor, revision, cursor, time, payload: payloads.get(pk)!, sinks }

  return emissions.flatMap(({ match, members }): ReadonlyArray<ReadonlyArray<NewMatch>> => {
    if (members === null) return [[match]]
    return members.length === 0 ? [] : [members.map((hit) => member(hit, match))]
  })
})
