import { type GatedMatch, type GateHit, type GateSession, gateSession, isGated, reachOf, sessionOf } from "../gate.ts"
import { newestOf } from "../emission.ts"
import type { NetworkRow } from "../network-row.ts"
import type { NewMatch } from "../storage.ts"
import { bulkInsert } from "./bulk-insert.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { hitColumns, sql } from "./sql.ts"

type SessionTuple = readonly [pk: number, id: string, primary: number, secondary: number, time: number]

/** Prepares the folding of gates in the transaction that mints. */
export const makeGates = (native: Native) => {
  const hasRevision = rows<readonly [number]>(native, sql.hasRevision)
  const inRange = rows<readonly [number]>(native, sql.hitsInRange)
  const recorded = rows<readonly [number]>(native, sql.hit)
  const sessionHits = rows<SessionTuple>(native, sql.sessionHits)
  const payloadOf = rows<readonly [string]>(native, sql.hitPayload)
  const consume = native.prepare(sql.consumeHit)
  const hitRows = bulkInsert(native, "gate_hits", hitColumns)

  /** Those whose monitor has another revision by now, or is gone, meet nothing that is recorded. */
  const open = (hits: ReadonlyArray<GatedMatch>, isPresent: boolean): GateSession => {
    const { monitor, revision, gate } = hits[0]!
    if (!isPresent) return gateSession(gate.gate, [])
    const { from, to } = reachOf(
      gate.gate,
      hits.map(({ time }) => time),
    )
    const consumed = gate.gate.type === "threshold" ? 0 : 1
    return gateSession(
      gate.gate,
      sessionHits
        .all(monitor, revision, gate.key, consumed, from, to)
        .map(([pk, id, primary, secondary, time]): GateHit => ({ pk, id, cursor: { primary, secondary }, time })),
    )
  }

  /**
   * Records the hits among the matches and puts in the place of each what it makes its gate emit: the members, in cursor
   * order. Other matches stay, each alone. Hits of another revision than the monitor has now are folded among themselves
   * and leave no rows, which nobody would drop.
   *
   * @param isNew whether a match would open a life: what stands is no hit
   */
  return (
    group: Group,
    network: NetworkRow,
    matches: ReadonlyArray<NewMatch>,
    isNew: (match: NewMatch) => boolean,
  ): ReadonlyArray<ReadonlyArray<NewMatch>> => {
    const gated = matches.filter(isGated)
    if (gated.length === 0) return matches.map((match) => [match])
    const primaries = gated.map(({ cursor }) => cursor.primary)
    const fresh = inRange.get(network.id, Math.min(...primaries), Math.max(...primaries)) === undefined
    const isRecorded = ({ cursor, monitor, id }: GatedMatch) =>
      !fresh && recorded.get(network.id, cursor.primary, cursor.secondary, monitor, id) !== undefined
    const hits = new Set(gated.filter((hit) => !isRecorded(hit) && isNew(hit)))
    const present = new Map<string, boolean>()
    const isPresent = ({ monitor, revision }: GatedMatch): boolean => {
      const name = JSON.stringify([monitor, revision])
      const known = present.get(name) ?? hasRevision.get(monitor, network.id, revision) !== undefined
      present.set(name, known)
      return known
    }
    const sessions = new Map(
      [...Map.groupBy(hits, sessionOf)].map(([key, ofKey]) => [key, open(ofKey, isPresent(ofKey[0]!))] as const),
    )
    let pk = hits.size === 0 ? 0 : group.take("hit", hits.size)
    const insert = hitRows()
    const arrived = new Map<number, GatedMatch>()

    /** The member as a match: what it was when it was recorded, for the sinks of now. */
    const member = (hit: GateHit, completing: GatedMatch): NewMatch =>
      arrived.get(hit.pk) ?? {
        id: hit.id,
        monitor: completing.monitor,
        revision: completing.revision,
        cursor: hit.cursor,
        time: hit.time,
        payload: payloadOf.get(hit.pk)![0],
        sinks: completing.sinks,
      }

    const fold = (match: GatedMatch): ReadonlyArray<NewMatch> => {
      const hit: GateHit = { pk: pk++, id: match.id, cursor: match.cursor, time: match.time }
      const end = sessions.get(sessionOf(match))!.add(hit)
      if (end === "discarded") return []
      arrived.set(hit.pk, match)
      if (!isPresent(match)) return end === "held" ? [] : end.map((consumed) => member(consumed, match))
      const { primary, secondary } = match.cursor
      insert.add(
        hit.pk,
        network.id,
        match.monitor,
        match.revision,
        match.gate.key,
        match.id,
        primary,
        secondary,
        match.time,
        match.gate.gate.windowMs,
        0,
        primary,
        secondary,
        match.payload,
      )
      if (end === "held") return []
      // What is consumed must be there.
      insert.flush()
      const kept = newestOf(end)
      for (const consumed of end) consume.run(kept.primary, kept.secondary, consumed.pk)
      return end.map((consumed) => member(consumed, match))
    }

    const units = matches.flatMap((match): ReadonlyArray<ReadonlyArray<NewMatch>> => {
      if (!isGated(match)) return [[match]]
      if (!hits.has(match)) return []
      const emitted = fold(match)
      return emitted.length === 0 ? [] : [emitted]
    })
    insert.flush()
    return units
  }
}
