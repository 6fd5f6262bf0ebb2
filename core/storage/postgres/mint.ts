import { Effect } from "effect"
import type { DeliveryRow, LateMintInput, Minted, MintInput, NewMatch } from "../storage.ts"
import { DeliveryColumns } from "./delivery-columns.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { storable } from "./text.ts"

interface Opened {
  readonly match: NewMatch
  readonly life: number
}

/** Each match once, without those whose predicate failed for no sink. */
const distinct = (matches: ReadonlyArray<NewMatch>): ReadonlyArray<NewMatch> => {
  const seen = new Set<string>()
  return matches.filter(({ id, failure, sinks }) => {
    if (seen.has(id) || (failure !== undefined && sinks.length === 0)) return false
    seen.add(id)
    return true
  })
}

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

/** The matches that open a life, each with the life. */
const lives = Effect.fnUntraced(function* (
  { session, network }: Group,
  matches: ReadonlyArray<NewMatch>,
  look: boolean,
): Effect.fn.Return<ReadonlyArray<Opened>, QueryFailed> {
  if (!look) return matches.map((match) => ({ match, life: network.firstLife(match.cursor) }))
  const newest = yield* session.all<readonly [place: number, life: number, ended: number]>(sql.newestLives, [
    network.id,
    matches.map(({ cursor }) => cursor.primary),
    matches.map(({ cursor }) => cursor.secondary),
    matches.map(({ id }) => id),
  ])
  const known = new Map(newest.map(([place, life, ended]) => [place - 1, { life, ended }]))
  return matches.flatMap((match, i): ReadonlyArray<Opened> => {
    const last = known.get(i)
    if (last === undefined) return [{ match, life: network.firstLife(match.cursor) }]
    return last.ended === 1 ? [{ match, life: last.life + 1 }] : []
  })
})

/** How a batch is minted: late finds hold no slot and are never offered at once. */
interface Terms {
  readonly late: boolean
  readonly offer: ReadonlyMap<string, number>
}

const insert = Effect.fnUntraced(function* (
  group: Group,
  opened: ReadonlyArray<Opened>,
  { late, offer }: Terms,
  now: number,
): Effect.fn.Return<Minted, QueryFailed> {
  const { session, network } = group
  if (opened.length === 0) return { rows: [], feedPosition: network.feedPosition, shown: 0 }
  const failed = opened.filter(({ match }) => match.failure !== undefined)
  const shown = opened.length - failed.length
  const rowsOf = (some: ReadonlyArray<Opened>) => some.reduce((sum, { match }) => sum + match.sinks.length, 0)
  const pks = yield* group.take("match", opened.length)
  const seqs = (yield* group.take("delivery", rowsOf(opened))).values()
  const deaths = (yield* group.take("died", rowsOf(failed))).values()
  let position = shown === 0 ? 0 : network.takePositions(shown)

  const offers = new Map(offer)
  const deliveries = new DeliveryColumns()
  const owed: Array<DeliveryRow> = []
  const positions = opened.map(({ match }) => (match.failure === undefined ? position++ : null))
  opened.forEach(({ match, life }, i) => {
    const { primary, secondary } = match.cursor
    const place = { pk: pks[i]!, primary, secondary }
    for (const sink of match.sinks) {
      const seq = seqs.next().value!
      if (match.failure !== undefined) {
        const reason = storable(match.failure)
        deliveries.add({ seq, sink, ...place, state: "dead", died: deaths.next().value!, reason })
        continue
      }
      const left = offers.get(sink) ?? 0
      if (left > 0) offers.set(sink, left - 1)
      const state = left > 0 ? "offered" : "pending"
      deliveries.add({ seq, sink, ...place, state })
      owed.push({
        seq,
        network: network.id,
        sink,
        monitor: match.monitor,
        matchId: match.id,
        life,
        kind: "match",
        cursor: match.cursor,
        state,
        attempts: 0,
        slot: !late,
        payload: match.payload,
        ...(match.event === undefined ? {} : { event: match.event }),
        ...(match.time === null ? {} : { time: match.time }),
      })
    }
  })
  yield* session.run(sql.mint, [
    network.id,
    now,
    "match",
    late ? 0 : 1,
    late ? 1 : 0,
    pks,
    opened.map(({ match }) => match.id),
    opened.map(({ life }) => life),
    opened.map(({ match }) => match.monitor),
    opened.map(({ match }) => match.revision),
    opened.map(({ match }) => match.cursor.primary),
    opened.map(({ match }) => match.cursor.secondary),
    opened.map(({ match }) => match.time),
    positions,
    opened.map(({ match }) => match.payload),
    ...deliveries.values,
  ])
  return { rows: owed, feedPosition: network.feedPosition, shown }
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
  const look = yield* anyStored(group, input.matches)
  const opened = yield* lives(group, distinct(input.matches), look)
  const minted = yield* insert(group, opened, { late: false, offer: input.offer }, now)
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
  const primaries = [...new Set(input.matches.map(({ cursor }) => cursor.primary))]
  const recorded = new Map(
    yield* session.all<readonly [primary: number, hash: string]>(sql.anchorsAt, [network.id, primaries]),
  )
  const proven = input.matches.filter(({ cursor, hash }) => recorded.get(cursor.primary) === hash)
  const opened = yield* lives(group, distinct(proven), true)
  return yield* insert(group, opened, { late: true, offer: new Map() }, now)
})
