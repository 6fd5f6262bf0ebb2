import { Effect } from "effect"
import type { Cursor } from "../../model/cursor.ts"
import {
  behind,
  type InvalidationTuple,
  noStep,
  RetractProgress,
  type StandingTuple,
  type Step,
  toInvalidation,
} from "../retracting.ts"
import { ACTIONS, type EventTerms } from "../events.ts"
import type { NewDelivery } from "../minted-rows.ts"
import type { Invalidation, Retracted } from "../storage.ts"
import type { Session } from "./connection.ts"
import { cutGates } from "./cut-gates.ts"
import { deliveryValues } from "./delivery-columns.ts"
import type { QueryFailed } from "./error.ts"
import { retractEvents } from "./events.ts"
import type { Group } from "./group.ts"
import { sql } from "./sql.ts"
import { storable } from "./text.ts"

type DeliveryTuple = readonly [place: number, seq: number, sink: string, state: string]

/** What a network takes back. */
export const readInvalidation = (session: Session, network: string): Effect.Effect<Invalidation | null, QueryFailed> =>
  Effect.map(session.all<InvalidationTuple>(sql.invalidation, [network]), ([tuple]) => toInvalidation(tuple))

/** Records what is to be taken back. */
export const invalidate = (
  { session, network }: Group,
  { from, cause }: { readonly from: Cursor; readonly cause: string },
): Effect.Effect<void, QueryFailed> =>
  Effect.asVoid(session.run(sql.putInvalidation, [network.id, from.primary, from.secondary, storable(cause)]))

/** Ends matches: lets go of what they owe, and owes their retractions to whoever may have heard of them. */
const end = Effect.fnUntraced(function* (
  group: Group,
  matches: ReadonlyArray<StandingTuple>,
  terms: EventTerms | undefined,
  now: number,
): Effect.fn.Return<number, QueryFailed> {
  if (matches.length === 0) return 0
  const { session, network } = group
  const shown = matches.filter(([, , , position]) => position !== null).length
  let position = shown === 0 ? 0 : network.takePositions(shown)
  const pks = matches.map(([pk]) => pk)
  yield* session.run(sql.endMatches, [pks, matches.map(([, , , shownAt]) => (shownAt === null ? null : position++))])
  // Rows of an emission's members lie where the newest of them lies.
  const places = matches.map(([, primary, secondary, , keptPrimary, keptSecondary]) => ({
    primary: keptPrimary ?? primary,
    secondary: keptSecondary ?? secondary,
  }))
  const deliveries = yield* session.all<DeliveryTuple>(sql.deliveriesOf, [
    network.id,
    places.map(({ primary }) => primary),
    pks,
  ])
  const open = deliveries.filter(([, , , state]) => state === "pending" || state === "offered")
  if (open.length > 0) yield* session.run(sql.letGo, [now, open.map(([, seq]) => seq)])
  const dead = deliveries.filter(([, , , state]) => state === "dead")
  if (dead.length > 0) yield* session.run(sql.endLetters, [dead.map(([, seq]) => seq)])
  const heard = deliveries.filter(([, , , state]) => state !== "pending" && state !== "cancelled")
  const seqs = yield* group.take("delivery", heard.length)
  const acts = (sink: string) => sink === ACTIONS && terms !== undefined
  const rows = heard.map(([place, , sink], i): NewDelivery => ({
    seq: seqs[i]!,
    sink,
    pk: pks[place - 1]!,
    cursor: places[place - 1]!,
    state: acts(sink) ? "delivered" : "pending",
    slot: false,
    digest: null,
    dead: null,
  }))
  if (rows.length > 0) yield* session.run(sql.addDeliveries, [network.id, now, "retracted", ...deliveryValues(rows)])
  if (terms !== undefined) {
    const toActions = rows.flatMap(({ sink, pk }) => (acts(sink) ? [pk] : []))
    yield* retractEvents(group, toActions, terms, now)
  }
  return shown
})

/** Matches from a cursor on that have not ended. */
const findStanding = ({ session, network }: Group, { primary, secondary }: Cursor, limit: number) =>
  session.all<StandingTuple>(sql.standing, [network.id, primary, secondary, limit])

/** Prepares the steps that end matches; a process that goes on with them need not begin at the proven point each time. */
export const makeRetract = () => {
  const progress = new RetractProgress()

  return {
    retract: Effect.fnUntraced(function* (
      group: Group,
      limit: number,
      terms: EventTerms | undefined,
      now: number,
    ): Effect.fn.Return<Step, QueryFailed> {
      const { session, network } = group
      const recorded = yield* readInvalidation(session, network.id)
      if (recorded === null || recorded.retracted) return noStep(network)
      const { from } = recorded
      const first = behind(from)
      const start = progress.next(network, from)
      // Members of an emission that is cut lie before the point; the others of it keep it standing until these have ended.
      const members = yield* session.all<StandingTuple>(sql.standingMembers, [
        network.id,
        first.primary,
        first.secondary,
        limit,
      ])
      const matches = members.length === limit ? [] : yield* findStanding(group, start, limit - members.length)
      const shown = yield* end(group, [...members, ...matches], terms, now)
      const ended = members.length + matches.length
      const left = limit - ended
      const revived =
        left === 0 ? 0 : yield* session.run(sql.reviveDead, [network.id, first.primary, first.secondary, left])
      const cut = revived === left ? 0 : yield* cutGates(group, from, left - revived)
      const step = { matches: ended, feedPosition: network.feedPosition, shown }
      if (revived + cut === left) {
        const last = matches.at(-1)
        const next = last === undefined ? start : { primary: last[1], secondary: last[2] }
        return { retracted: { ...step, done: false }, reached: { epoch: network.epoch, from, next } }
      }
      // A late find may have been minted before the point that was reached.
      const done = (yield* findStanding(group, first, 1)).length === 0
      if (done) yield* session.run(sql.retracted, [network.id])
      return { retracted: { ...step, done }, reached: null }
    }),

    remember: (network: string, step: Step): Retracted => progress.remember(network, step),
  }
}
