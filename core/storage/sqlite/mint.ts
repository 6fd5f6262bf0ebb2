import { distinct, type Emission, emissionOf } from "../emission.ts"
import type { NetworkRow } from "../network-row.ts"
import type { LateMintInput, Minted, MintInput, DeliveryRow, NewMatch } from "../storage.ts"
import { bulkInsert } from "./bulk-insert.ts"
import { makeGates } from "./gates.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { deliveryColumns, matchColumns, sql } from "./sql.ts"

/** How a batch is minted: late finds hold no slot and are never offered at once. */
interface Terms {
  readonly late: boolean
  readonly offer: ReadonlyMap<string, number>
  readonly durable: ReadonlySet<string>
  /** No match of the batch's range is stored yet, so that none need be looked up. */
  readonly fresh: boolean
}

/** Prepares the two ways to mint. */
export const makeMint = (native: Native) => {
  const anyInRange = rows<readonly [number]>(native, sql.anyInRange)
  const newestLife = rows<readonly [life: number, ended: number]>(native, sql.newestLife)
  const matchRows = bulkInsert(native, "matches", matchColumns)
  const deliveryRows = bulkInsert(native, "deliveries", deliveryColumns)
  const putAnchor = native.prepare(sql.putAnchor)
  const addAnchor = native.prepare(sql.addAnchor)
  const anchorAt = rows<readonly [string]>(native, sql.anchor)
  const effective = native.prepare(sql.effective)
  const passGates = makeGates(native)

  /** The life in which a match would be minted, or null when its newest life has not ended. */
  const nextLife = (network: NetworkRow, match: NewMatch): number | null => {
    const { cursor, id } = match
    const newest = newestLife.get(network.id, cursor.primary, cursor.secondary, id)
    if (newest === undefined) return network.firstLife(match.cursor)
    return newest[1] === 1 ? newest[0] + 1 : null
  }

  /** What is minted of a batch: of each match once, those that open a life and pass their gate. */
  const toMint = (
    group: Group,
    network: NetworkRow,
    matches: ReadonlyArray<NewMatch>,
    { fresh, late }: Terms,
  ): ReadonlyArray<Emission> => {
    const units = passGates(group, network, distinct(matches), (match) => fresh || nextLife(network, match) !== null)
    return units.flatMap((unit) => {
      const members = unit.flatMap((match) => {
        // What a gate held lies elsewhere than the batch.
        const life = fresh && unit.length === 1 ? network.firstLife(match.cursor) : nextLife(network, match)
        return life === null ? [] : [{ match, life }]
      })
      return members.length === 0 ? [] : [emissionOf(members, !late)]
    })
  }

  const insert = (
    group: Group,
    network: NetworkRow,
    matches: ReadonlyArray<NewMatch>,
    terms: Terms,
    now: number,
  ): Minted => {
    const emissions = toMint(group, network, matches, terms)
    let count = 0
    let shown = 0
    let sent = 0
    let failed = 0
    for (const { members, sinks } of emissions) {
      count += members.length
      sent += members.length * sinks.length
      if (members[0]!.match.failure === undefined) shown += members.length
      else failed += sinks.length
    }
    let position = shown === 0 ? 0 : network.takePositions(shown)
    let pk = count === 0 ? 0 : group.take("match", count)
    let seq = sent === 0 ? 0 : group.take("delivery", sent)
    let died = failed === 0 ? 0 : group.take("died", failed)
    const insertMatch = matchRows()
    const insertDelivery = deliveryRows()
    const offers = new Map(terms.offer)
    const owed: Array<DeliveryRow> = []
    const late = terms.late ? 1 : 0

    for (const { members, sinks, emission, kept, slot } of emissions) {
      const firstPk = pk
      for (const { match, life } of members) {
        insertMatch.add(
          pk++,
          match.id,
          life,
          network.id,
          match.monitor,
          match.revision,
          match.cursor.primary,
          match.cursor.secondary,
          match.time,
          match.failure === undefined ? position++ : null,
          late,
          0,
          emission,
          kept === null ? null : kept.primary,
          kept === null ? null : kept.secondary,
          match.payload,
        )
      }
      for (const sink of sinks) {
        for (let i = 0; i < members.length; i++) {
          const { match, life } = members[i]!
          const cursor = kept ?? match.cursor
          const dead = match.failure !== undefined
          const left = dead ? 0 : (offers.get(sink) ?? 0)
          if (left > 0) offers.set(sink, left - 1)
          const state = left > 0 ? "offered" : "pending"
          const holds = slot && !dead && !terms.durable.has(sink)
          insertDelivery.add(
            seq,
            network.id,
            sink,
            firstPk + i,
            "match",
            cursor.primary,
            cursor.secondary,
            dead ? "dead" : state,
            0,
            holds ? 1 : 0,
            emission,
            now,
            dead ? now : null,
            dead ? died++ : null,
            dead ? match.monitor : null,
            match.failure ?? null,
          )
          const key = seq++
          if (dead) continue
          owed.push({
            seq: key,
            network: network.id,
            sink,
            monitor: match.monitor,
            matchId: match.id,
            life,
            kind: "match",
            cursor,
            state,
            digest: emission,
            attempts: 0,
            slot: holds,
            payload: match.payload,
            ...(match.event === undefined ? {} : { event: match.event }),
            ...(match.time === null ? {} : { time: match.time }),
          })
        }
      }
    }
    insertMatch.flush()
    insertDelivery.flush()
    return { rows: owed, feedPosition: network.feedPosition, shown }
  }

  const isFresh = (network: string, matches: ReadonlyArray<NewMatch>): boolean => {
    const first = matches[0]?.cursor
    const last = matches.at(-1)?.cursor
    return (
      first === undefined ||
      last === undefined ||
      anyInRange.get(network, first.primary, last.primary, first.primary, first.secondary) === undefined
    )
  }

  return {
    mint: (group: Group, network: NetworkRow, input: MintInput, now: number): Minted => {
      for (const { primary, hash } of input.anchors) putAnchor.run(network.id, primary, hash)
      for (const { monitor, matchRevision, from } of input.effective) {
        effective.run(from.primary, from.secondary, monitor, network.id, matchRevision)
      }
      const { offer, durable } = input
      const terms = { late: false, offer, durable, fresh: isFresh(network.id, input.matches) }
      const minted = insert(group, network, input.matches, terms, now)
      network.advanceMinted(input.upTo)
      if (input.checkpoint !== null) network.advanceCheckpoint(input.checkpoint, now)
      return minted
    },

    mintLate: (group: Group, network: NetworkRow, input: LateMintInput, now: number): Minted => {
      for (const { primary, hash } of input.anchors) addAnchor.run(network.id, primary, hash)
      const recorded = new Map<number, string | undefined>()
      const proven = input.matches.filter(({ cursor, hash }) => {
        if (!recorded.has(cursor.primary)) {
          recorded.set(cursor.primary, anchorAt.get(network.id, cursor.primary)?.[0])
        }
        return recorded.get(cursor.primary) === hash
      })
      const terms = { late: true, offer: new Map(), durable: new Set<string>(), fresh: false }
      return insert(group, network, proven, terms, now)
    },
  }
}
