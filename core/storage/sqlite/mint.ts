import type { LateMintInput, Minted, MintInput, DeliveryRow, NewMatch } from "../storage.ts"
import { bulkInsert } from "./bulk-insert.ts"
import type { NetworkRow } from "../network-row.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { deliveryColumns, matchColumns, sql } from "./sql.ts"

/** How a batch is minted: late finds hold no slot and are never offered at once. */
interface Terms {
  readonly late: boolean
  readonly offer: ReadonlyMap<string, number>
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

  /** The life in which a match would be minted, or null when its newest life has not ended. */
  const nextLife = (network: NetworkRow, match: NewMatch): number | null => {
    const { cursor, id } = match
    const newest = newestLife.get(network.id, cursor.primary, cursor.secondary, id)
    if (newest === undefined) return network.firstLife(match.cursor)
    return newest[1] === 1 ? newest[0] + 1 : null
  }

  /** The matches that open a life, each with the life. */
  const toMint = (network: NetworkRow, matches: ReadonlyArray<NewMatch>, fresh: boolean) => {
    const seen = new Set<string>()
    const minted: Array<{ readonly match: NewMatch; readonly life: number }> = []
    for (const match of matches) {
      if (seen.has(match.id) || (match.failure !== undefined && match.sinks.length === 0)) continue
      seen.add(match.id)
      const life = fresh ? network.firstLife(match.cursor) : nextLife(network, match)
      if (life !== null) minted.push({ match, life })
    }
    return minted
  }

  const insert = (
    group: Group,
    network: NetworkRow,
    matches: ReadonlyArray<NewMatch>,
    terms: Terms,
    now: number,
  ): Minted => {
    const minted = toMint(network, matches, terms.fresh)
    let shown = 0
    let sent = 0
    let failed = 0
    for (const { match } of minted) {
      sent += match.sinks.length
      if (match.failure === undefined) shown++
      else failed += match.sinks.length
    }
    let position = shown === 0 ? 0 : network.takePositions(shown)
    let pk = minted.length === 0 ? 0 : group.take("match", minted.length)
    let seq = sent === 0 ? 0 : group.take("delivery", sent)
    let died = failed === 0 ? 0 : group.take("died", failed)
    const insertMatch = matchRows()
    const insertDelivery = deliveryRows()
    const offers = new Map(terms.offer)
    const owed: Array<DeliveryRow> = []
    const late = terms.late ? 1 : 0
    const slot = terms.late ? 0 : 1

    for (const { match, life } of minted) {
      const { primary, secondary } = match.cursor
      const failure = match.failure
      insertMatch.add(
        pk,
        match.id,
        life,
        network.id,
        match.monitor,
        match.revision,
        primary,
        secondary,
        match.time,
        failure === undefined ? position++ : null,
        late,
        0,
        match.payload,
      )
      for (const sink of match.sinks) {
        if (failure !== undefined) {
          insertDelivery.add(
            seq++,
            network.id,
            sink,
            pk,
            "match",
            primary,
            secondary,
            "dead",
            0,
            0,
            now,
            now,
            died++,
            failure,
          )
          continue
        }
        const left = offers.get(sink) ?? 0
        if (left > 0) offers.set(sink, left - 1)
        const state = left > 0 ? "offered" : "pending"
        insertDelivery.add(
          seq,
          network.id,
          sink,
          pk,
          "match",
          primary,
          secondary,
          state,
          0,
          slot,
          now,
          null,
          null,
          null,
        )
        owed.push({
          seq: seq++,
          network: network.id,
          sink,
          monitor: match.monitor,
          matchId: match.id,
          life,
          kind: "match",
          cursor: match.cursor,
          state,
          attempts: 0,
          slot: slot === 1,
          payload: match.payload,
          ...(match.event === undefined ? {} : { event: match.event }),
          ...(match.time === null ? {} : { time: match.time }),
        })
      }
      pk++
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
      const terms = { late: false, offer: input.offer, fresh: isFresh(network.id, input.matches) }
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
      return insert(group, network, proven, { late: true, offer: new Map(), fresh: false }, now)
    },
  }
}
