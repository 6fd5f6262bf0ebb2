import { Effect } from "effect"
import { deliveryId } from "../../model/sink-event.ts"
import { type EventTerms, matchType, type NewEvent } from "../events.ts"
import { type ActionRowTuple, toNewEvent } from "../tuples/action-row.ts"
import type { QueryFailed } from "./error.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"

/** Writes events of matches; each goes to the actions that are subscribed to its monitor. */
export const addEvents = Effect.fnUntraced(function* (
  group: Group,
  events: ReadonlyArray<NewEvent>,
  { actions = new Map(), traceparent = null }: Partial<EventTerms>,
  now: number,
): Effect.fn.Return<void, QueryFailed> {
  if (events.length === 0) return
  const { session, network } = group
  group.wroteEvents = true
  const monitors = [...new Set(events.map(({ monitor }) => monitor))]
  const subscribed = monitors.flatMap((monitor) =>
    (actions.get(monitor) ?? []).map((action) => ({ type: matchType(monitor), action })),
  )
  yield* session.run(sql.addEvents, [
    network.id,
    now,
    traceparent,
    events.map(({ matchId, life }) => deliveryId(matchId, life, "match")),
    events.map(({ monitor }) => matchType(monitor)),
    events.map(({ pk }) => pk),
    events.map(({ matchId }) => matchId),
    events.map(({ life }) => life),
    events.map(({ primary }) => primary),
    events.map(({ emission }) => emission),
    subscribed.map(({ type }) => type),
    subscribed.map(({ action }) => action),
  ])
})

/** Takes back the events of matches that ended: whoever got one hears of it. Matches that none was made of are left out. */
export const retractEvents = Effect.fnUntraced(function* (
  group: Group,
  pks: ReadonlyArray<number>,
  { traceparent = null }: EventTerms,
  now: number,
): Effect.fn.Return<void, QueryFailed> {
  if (pks.length === 0) return
  group.wroteEvents = true
  yield* group.session.run(sql.retractEvents, [now, traceparent, pks])
})

/** Makes events of rows that are owed to the sink `actions`, up to `limit`; answers how many there were. */
export const emitOwed = Effect.fnUntraced(function* (
  group: Group,
  terms: EventTerms,
  limit: number,
  now: number,
): Effect.fn.Return<number, QueryFailed> {
  const { session, network } = group
  const found = yield* session.all<ActionRowTuple>(sql.owedToActions, [network.id, limit])
  if (found.length === 0) return 0
  yield* addEvents(group, found.filter(([, kind]) => kind === "match").map(toNewEvent), terms, now)
  const ended = found.filter(([, kind]) => kind === "retracted").map(([, , , pk]) => pk)
  yield* retractEvents(group, ended, terms, now)
  yield* session.run(sql.emitted, [now, found.map(([seq]) => seq)])
  return found.length
})

/** Makes an event of a dead letter of the sink `actions` whose match stands; false if it is none. */
export const emitLetter = Effect.fnUntraced(function* (
  group: Group,
  seq: number,
  terms: EventTerms,
  now: number,
): Effect.fn.Return<boolean, QueryFailed> {
  const found = yield* group.session.all<ActionRowTuple>(sql.letterToActions, [seq, group.network.id])
  yield* addEvents(group, found.map(toNewEvent), terms, now)
  return found.length > 0
})
