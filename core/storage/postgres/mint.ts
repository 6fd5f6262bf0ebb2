import { Effect } from "effect"
import type { Cursor } from "../../model/cursor.ts"
import { distinct, type Emission, emissionOf } from "../emission.ts"
import { countRows, rowsOf, type RowTerms } from "../minted-rows.ts"
import type { LateMintInput, Minted, MintInput, NewMatch } from "../storage.ts"
import { deliveryValues } from "./delivery-columns.ts"
import type { QueryFailed } from "./error.ts"
import { addEvents } from "./events.ts"
import { passGates } from "./gates.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

/** Whether any match is stored that lies where these do, so that each must be looked up. */
const anyStored = (
  { session, network }: Group,
  matches: ReadonlyArray<NewMatch>,
): Effect.Effect<boolean, QueryFailed> => {
  const first = matches[0]?.cursor
  const last = matches.at(-1)?.cursor
  if (first === undefined || last === undefined) return Effect.succeed(false)
  return Effect.map(
    session.all(sql.anyInRange, [network.id, first.primary, last.primary, first.secondary]),
    (found) => found.length > 0,
  )
}

/** The lives that matches open; those that stand are left out. */
const lives = Effect.fnUntraced(function* (
  { session, network }: Group,
  matches: ReadonlyArray<NewMatch>,
  look: boolean,
): Effect.fn.Return<ReadonlyMap<NewMatch, number>, QueryFailed> {
  if (!look) return new Map(matches.map((match) => [match, network.firstLife(match.cursor)]))
  const newest = yield* session.all<readonly [place: number, life: number, ended: number]>(sql.newestLives, [
    network.id,
    matches.map(({ cursor }) => cursor.primary),
    matches.map(({ cursor }) => cursor.secondary),
    matches.map(({ id }) => id),
  ])
  const known = new Map(newest.map(([place, life, ended]) => [place - 1, { life, ended }]))
  return new Map(
    matches.flatMap((match, i): ReadonlyArray<readonly [NewMatch, number]> => {
      const last = known.get(i)
      if (last === undefined) return [[match, network.firstLife(match.cursor)]]
      return last.ended === 1 ? [[match, last.life + 1]] : []
    }),
  )
})

/** How a batch is minted: late finds hold no slot and are never offered at once. */
interface Terms extends RowTerms {
  readonly late: boolean
  /** Whether matches may be stored already, so that each must be looked up. */
  readonly look: boolean
}

/** What is minted of a batch: of each match once, those that open a life and pass their gate. */
const toMint = Effect.fnUntraced(function* (
  group: Group,
  matches: ReadonlyArray<NewMatch>,
  { late, look }: Terms,
): Effect.fn.Return<ReadonlyArray<Emission>, QueryFailed> {
  const batch = distinct(matches)
  const opened = yield* lives(group, batch, look)
  const units = yield* passGates(group, batch, (match) => opened.has(match))
  const present = new Set(batch)
  const held = units.flat().filter((match) => !present.has(match))
  const reopened = held.length === 0 ? new Map<NewMatch, number>() : yield* lives(group, held, true)
  return units.flatMap((unit) => {
    const members = unit.flatMap((match) => {
      const life = opened.get(match) ?? reopened.get(match)
      return life === undefined ? [] : [{ match, life }]
    })
    return members.length === 0 ? [] : [emissionOf(members, !late)]
  })
})

const insert = Effect.fnUntraced(function* (
  group: Group,
  matches: ReadonlyArray<NewMatch>,
  terms: Terms,
  now: number,
): Effect.fn.Return<Minted, QueryFailed> {
  const { session, network } = group
  const emissions = yield* toMint(group, matches, terms)
  if (emissions.length === 0) return { rows: [], feedPosition: network.feedPosition, shown: 0 }
  const counts = countRows(emissions)
  const take = (name: "match" | "delivery" | "died") =>
    Effect.map(group.take(name, counts[name]), (taken) => {
      const numbers = taken.values()
      return () => numbers.next().value!
    })
  let position = counts.shown === 0 ? 0 : network.takePositions(counts.shown)
  const {
    matches: minted,
    deliveries,
    owed,
    events,
  } = rowsOf(network.id, emissions, terms, {
    match: yield* take("match"),
    delivery: yield* take("delivery"),
    died: yield* take("died"),
    shown: () => position++,
  })
  yield* session.run(sql.mint, [
    network.id,
    now,
    "match",
    terms.late ? 1 : 0,
    minted.map(({ pk }) => pk),
    minted.map(({ match }) => match.id),
    minted.map(({ life }) => life),
    minted.map(({ match }) => match.monitor),
    minted.map(({ match }) => match.revision),
    minted.map(({ match }) => match.cursor.primary),
    minted.map(({ match }) => match.cursor.secondary),
    minted.map(({ match }) => match.time),
    minted.map((one) => one.position),
    minted.map(({ emission }) => emission),
    minted.map(({ kept }) => kept?.primary ?? null),
    minted.map(({ kept }) => kept?.secondary ?? null),
    minted.map(({ match }) => match.payload),
    ...deliveryValues(deliveries),
  ])
  yield* addEvents(group, events, terms, now)
  return { rows: owed, feedPosition: network.feedPosition, shown: counts.shown }
})

/** Writes what the source keeps from now on, and removes what it keeps no longer. */
const keepRecords = Effect.fnUntraced(function* (
  { session, network }: Group,
  { records = [], forget = [] }: Pick<MintInput, "records" | "forget">,
): Effect.fn.Return<void, QueryFailed> {
  if (forget.length > 0) {
    yield* session.run(sql.forgetRecords, [network.id, forget.map(({ key }) => key), forget.map(({ value }) => value)])
  }
  if (records.length === 0) return
  // Of two that are one the last one counts; a statement may touch a row but once.
  const distinct = [...new Map(records.map((record) => [JSON.stringify([record.key, record.value]), record])).values()]
  yield* session.run(sql.putRecords, [
    network.id,
    distinct.map(({ key }) => key),
    distinct.map(({ value }) => value),
    distinct.map(({ cursor }) => cursor.primary),
    distinct.map(({ cursor }) => cursor.secondary),
  ])
})

/** Mints a batch, with what its source verifies by and the monitors that take effect with it. */
export const mint = Effect.fnUntraced(function* (
  group: Group,
  input: MintInput,
  now: number,
): Effect.fn.Return<Minted, QueryFailed> {
  const { session, network } = group
  // Of two for one height the last one counts; a statement may touch a row but once.
  const anchors = [...new Map(input.anchors.map(({ primary, hash }) => [primary, hash]))]
  if (anchors.length > 0) {
    yield* session.run(sql.putAnchors, [
      network.id,
      anchors.map(([primary]) => primary),
      anchors.map(([, hash]) => hash),
    ])
  }
  if (input.effective.length > 0) {
    yield* session.run(sql.effective, [
      network.id,
      input.effective.map(({ monitor }) => monitor),
      input.effective.map(({ matchRevision }) => matchRevision),
      input.effective.map(({ from }) => from.primary),
      input.effective.map(({ from }) => from.secondary),
    ])
  }
  yield* keepRecords(group, input)
  const look = yield* anyStored(group, input.matches)
  const minted = yield* insert(group, input.matches, { ...input, late: false, look }, now)
  network.advanceMinted(input.upTo)
  if (input.checkpoint !== null) network.advanceCheckpoint(input.checkpoint, now)
  return minted
})

/** Mints late finds that are proven by the recorded hashes. */
export const mintLate = Effect.fnUntraced(function* (
  group: Group,
  input: LateMintInput,
  now: number,
): Effect.fn.Return<Minted, QueryFailed> {
  const { session, network } = group
  if (input.anchors.length > 0) {
    yield* session.run(sql.addAnchors, [
      network.id,
      input.anchors.map(({ primary }) => primary),
      input.anchors.map(({ hash }) => hash),
    ])
  }
  const { matches, records = [] } = input
  const primaries = [...new Set([...matches, ...records].map(({ cursor }) => cursor.primary))]
  const recorded = new Map(
    yield* session.all<readonly [primary: number, hash: string]>(sql.anchorsAt, [network.id, primaries]),
  )
  const isProven = ({ cursor, hash }: { readonly cursor: Cursor; readonly hash: string }) =>
    recorded.get(cursor.primary) === hash
  yield* keepRecords(group, { records: records.filter(isProven) })
  const terms = { ...input, late: true, offer: new Map(), durable: new Set<string>(), look: true }
  return yield* insert(group, matches.filter(isProven), terms, now)
})
