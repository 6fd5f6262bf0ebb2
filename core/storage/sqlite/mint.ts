import type { Cursor } from "../../model/cursor.ts"
import type { SourceRecord } from "../../plugin/source.ts"
import { distinct, type Emission, emissionOf } from "../emission.ts"
import { countRows, rowsOf, type RowTerms } from "../minted-rows.ts"
import type { NetworkRow } from "../network-row.ts"
import type { LateMintInput, Minted, MintInput, NewMatch } from "../storage.ts"
import { bulkInsert } from "./bulk-insert.ts"
import { makeEvents } from "./events.ts"
import { makeGates } from "./gates.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { deliveryColumns, matchColumns, sql } from "./sql.ts"

/** How a batch is minted: late finds hold no slot and are never offered at once. */
interface Terms extends RowTerms {
  readonly late: boolean
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
  const putRecord = native.prepare(sql.putRecord)
  const forgetRecord = native.prepare(sql.forgetRecord)
  const passGates = makeGates(native)
  const events = makeEvents(native)

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
    const counts = countRows(emissions)
    const take = (name: "match" | "delivery" | "died") => {
      const count = counts[name]
      let next = count === 0 ? 0 : group.take(name, count)
      return () => next++
    }
    let position = counts.shown === 0 ? 0 : network.takePositions(counts.shown)
    const minted = rowsOf(network.id, emissions, terms, {
      match: take("match"),
      delivery: take("delivery"),
      died: take("died"),
      shown: () => position++,
    })
    const insertMatch = matchRows()
    for (const { match, life, pk, position, emission, kept } of minted.matches) {
      insertMatch.add(
        pk,
        match.id,
        life,
        network.id,
        match.monitor,
        match.revision,
        match.cursor.primary,
        match.cursor.secondary,
        match.time,
        position,
        terms.late ? 1 : 0,
        0,
        emission,
        kept === null ? null : kept.primary,
        kept === null ? null : kept.secondary,
        match.payload,
      )
    }
    const insertDelivery = deliveryRows()
    for (const { seq, sink, pk, cursor, state, slot, digest, dead } of minted.deliveries) {
      insertDelivery.add(
        seq,
        network.id,
        sink,
        pk,
        "match",
        cursor.primary,
        cursor.secondary,
        state,
        0,
        slot ? 1 : 0,
        digest,
        now,
        state === "dead" || state === "delivered" ? now : null,
        dead === null ? null : dead.died,
        dead === null ? null : dead.monitor,
        dead === null ? null : "match",
        dead === null ? null : dead.reason,
      )
    }
    insertMatch.flush()
    insertDelivery.flush()
    events.add(group, network.id, minted.events, terms, now)
    return { rows: minted.owed, feedPosition: network.feedPosition, shown: counts.shown }
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

  const keepRecords = (network: NetworkRow, records: ReadonlyArray<SourceRecord>) => {
    for (const { key, value, cursor } of records)
      putRecord.run(network.id, key, value, cursor.primary, cursor.secondary)
  }

  return {
    mint: (group: Group, network: NetworkRow, input: MintInput, now: number): Minted => {
      for (const { primary, hash } of input.anchors) putAnchor.run(network.id, primary, hash)
      for (const { monitor, matchRevision, from } of input.effective) {
        effective.run(from.primary, from.secondary, monitor, network.id, matchRevision)
      }
      for (const { key, value } of input.forget ?? []) forgetRecord.run(network.id, key, value)
      keepRecords(network, input.records ?? [])
      const terms = { ...input, late: false, fresh: isFresh(network.id, input.matches) }
      const minted = insert(group, network, input.matches, terms, now)
      network.advanceMinted(input.upTo)
      if (input.checkpoint !== null) network.advanceCheckpoint(input.checkpoint, now)
      return minted
    },

    mintLate: (group: Group, network: NetworkRow, input: LateMintInput, now: number): Minted => {
      for (const { primary, hash } of input.anchors) addAnchor.run(network.id, primary, hash)
      const recorded = new Map<number, string | undefined>()
      const isProven = ({ cursor, hash }: { readonly cursor: Cursor; readonly hash: string }) => {
        if (!recorded.has(cursor.primary)) {
          recorded.set(cursor.primary, anchorAt.get(network.id, cursor.primary)?.[0])
        }
        return recorded.get(cursor.primary) === hash
      }
      keepRecords(network, (input.records ?? []).filter(isProven))
      const proven = input.matches.filter(isProven)
      const terms = { ...input, late: true, offer: new Map(), durable: new Set<string>(), fresh: false }
      return insert(group, network, proven, terms, now)
    },
  }
}
