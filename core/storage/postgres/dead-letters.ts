import { Effect } from "effect"
import type { DeadLetterFilter, DeadLetterRow, DeliveryRow, NoReplay } from "../storage.ts"
import { type DeadLetterTuple, filterParts, filterValues, noReplay, toDeadLetterRow } from "../tuples/dead-letter.ts"
import { type DeliveryTuple, toDeliveryRow } from "../tuples/delivery.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { deadLetterCountSql, deadLettersSql, discardAllSql, sql } from "./sql.ts"

export const readDeadLetters = (
  session: Session,
  filter: DeadLetterFilter,
  page: { readonly after: number; readonly limit: number },
): Effect.Effect<ReadonlyArray<DeadLetterRow>, QueryFailed> =>
  Effect.map(
    session.all<DeadLetterTuple>(deadLettersSql(filterParts(filter)), [
      ...filterValues(filter),
      page.after,
      page.limit,
    ]),
    (found) => found.map(toDeadLetterRow),
  )

export const countDeadLetters = (session: Session, filter: DeadLetterFilter): Effect.Effect<number, QueryFailed> =>
  Effect.map(
    session.all<readonly [number]>(deadLetterCountSql({ network: true, ...filterParts(filter) }), filterValues(filter)),
    ([row]) => row![0],
  )

export const readDeadLetter = (
  session: Session,
  network: string,
  seq: number,
): Effect.Effect<DeadLetterRow | null, QueryFailed> =>
  Effect.map(session.all<DeadLetterTuple>(sql.deadLetter, [seq, network]), ([tuple]) =>
    tuple === undefined ? null : toDeadLetterRow(tuple),
  )

/** Makes a dead letter an offered row again, or answers why it cannot. */
export const replay = Effect.fnUntraced(function* (
  { session, network }: Group,
  seq: number,
): Effect.fn.Return<DeliveryRow | NoReplay | "NOT_FOUND", QueryFailed> {
  const letter = yield* readDeadLetter(session, network.id, seq)
  if (letter === null) return "NOT_FOUND"
  const refused = noReplay(letter)
  if (refused !== null) return refused
  const [replayed] = yield* session.all<readonly [sink: string, ...row: DeliveryTuple]>(sql.replay, [seq])
  const [sink, ...row] = replayed!
  return toDeliveryRow(network.id, sink)(row)
})

/** Gives a dead letter up; false when there is none. */
export const discard = ({ session, network }: Group, seq: number, now: number): Effect.Effect<boolean, QueryFailed> =>
  Effect.map(session.run(sql.discard, [now, seq, network.id]), (changed) => changed > 0)

/** Gives dead letters up, the oldest first; how many. */
export const discardAll = (
  { session, network }: Group,
  filter: Omit<DeadLetterFilter, "network">,
  limit: number,
  now: number,
): Effect.Effect<number, QueryFailed> => {
  const whole = { ...filter, network: network.id }
  return session.run(discardAllSql(filterParts(whole)), [...filterValues(whole), 0, limit, now])
}

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
