import { Effect } from "effect"
import type { DeadLetterCount, DeadLetterRow, LetterFilter } from "../dead-letter.ts"
import type { EventTerms } from "../events.ts"
import type { DeliveryRow, Outcome } from "../storage.ts"
import { type DeadLetterTuple, filterParts, filterValues, toDeadLetterRow } from "../tuples/dead-letter.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { emitLetter } from "./events.ts"
import type { Group } from "./group.ts"
import { deadLetterCountSql, deadLettersSql, lettersBetweenSql, sql } from "./sql.ts"
import { storable } from "./text.ts"

export const readDeadLetters = (
  session: Session,
  filter: LetterFilter,
  page: { readonly after: number; readonly limit: number },
): Effect.Effect<ReadonlyArray<DeadLetterRow>, QueryFailed> => {
  const parts = filterParts(filter)
  if (parts.kinds.length === 0) return Effect.succeed([])
  return Effect.map(
    session.all<DeadLetterTuple>(deadLettersSql(parts), [page.limit, page.after, ...filterValues(filter)]),
    (found) => found.map(toDeadLetterRow),
  )
}

export const countLettersBetween = (
  session: Session,
  filter: LetterFilter,
  page: { readonly after: number; readonly upTo: number; readonly limit: number },
): Effect.Effect<{ readonly letters: number; readonly last: number }, QueryFailed> => {
  const parts = filterParts(filter)
  if (parts.kinds.length === 0) return Effect.succeed({ letters: 0, last: 0 })
  return Effect.map(
    session.all<readonly [letters: number, last: number]>(lettersBetweenSql(parts), [
      page.limit,
      page.after,
      ...filterValues(filter),
      page.upTo,
    ]),
    ([counted]) => ({ letters: Number(counted![0]), last: Number(counted![1]) }),
  )
}

export const countDeadLetters = (session: Session, filter: LetterFilter): Effect.Effect<number, QueryFailed> => {
  const { kinds, ...by } = filterParts(filter)
  const text = deadLetterCountSql({ network: true, ...by }, kinds)
  return Effect.map(session.all<readonly [number]>(text, filterValues(filter)), ([row]) => row![0])
}

export const readDeadLetter = (
  session: Session,
  network: string,
  seq: number,
): Effect.Effect<DeadLetterRow | null, QueryFailed> =>
  Effect.map(session.all<DeadLetterTuple>(sql.deadLetter, [seq, network]), ([tuple]) =>
    tuple === undefined ? null : toDeadLetterRow(tuple),
  )

export const isRetractionOwed = (
  session: Session,
  { network, sink, matchId, cursor }: Pick<DeadLetterRow, "network" | "sink" | "matchId" | "cursor">,
): Effect.Effect<boolean, QueryFailed> =>
  Effect.map(
    session.all(sql.retractionOwed, [network, cursor.primary, cursor.secondary, matchId, sink]),
    (found) => found.length > 0,
  )

export const readDeadLetterCounts = (
  session: Session,
  network: string,
): Effect.Effect<ReadonlyArray<DeadLetterCount>, QueryFailed> =>
  Effect.map(
    session.all<readonly [sink: string, monitor: string, letters: number]>(sql.letterCounts, [network]),
    (found) => found.map(([sink, monitor, letters]) => ({ sink, monitor, letters })),
  )

/** Writes how the replay of a dead letter ended, with its event where `terms` are given; false if it was a letter no more. */
export const replayed = Effect.fnUntraced(function* (
  group: Group,
  { seq, state, attempts, reason }: Outcome,
  terms: EventTerms | undefined,
  now: number,
): Effect.fn.Return<boolean, QueryFailed> {
  const { session, network } = group
  if (terms !== undefined && !(yield* emitLetter(group, seq, terms, now))) return false
  const rows =
    state === "delivered"
      ? yield* session.run(sql.replayDelivered, [attempts, now, seq, network.id])
      : yield* session.run(sql.replayFailed, [attempts, reason === null ? null : storable(reason), seq, network.id])
  return rows > 0
})

/** Gives dead letters up; how many there were. */
export const discard = (
  { session, network }: Group,
  seqs: ReadonlyArray<number>,
  now: number,
): Effect.Effect<number, QueryFailed> => session.run(sql.discard, [now, seqs, network.id])

/** Owes retractions again that died at a sink, in the order of dying; answers them. */
export const offerRetractions = Effect.fnUntraced(function* (
  { session, network }: Group,
  sink: string,
  limit: number,
): Effect.fn.Return<ReadonlyArray<DeliveryRow>, QueryFailed> {
  const found = yield* session.all<DeliveryTuple>(sql.unheardRetractions, [network.id, sink, limit])
  if (found.length > 0) yield* session.run(sql.offerRetractions, [found.map(([seq]) => seq)])
  return found.map(toDeliveryRow(network.id, sink))
})
