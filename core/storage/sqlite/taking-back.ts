import type { Cursor } from "../../model/cursor.ts"
import { ACTIONS, type EventTerms } from "../events.ts"
import type { Invalidation, Retracted } from "../storage.ts"
import { bulkInsert } from "./bulk-insert.ts"
import { makeCutGates } from "./cut-gates.ts"
import type { NetworkRow } from "../network-row.ts"
import {
  behind,
  type InvalidationTuple,
  noStep,
  RetractProgress,
  type StandingTuple,
  type Step,
  toInvalidation,
} from "../retracting.ts"
import { makeEvents } from "./events.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { deliveryColumns, sql } from "./sql.ts"

type HeardTuple = readonly [sink: string]

/** Prepares the read of what a network takes back. */
export const makeInvalidationRead = (native: Native): ((network: string) => Invalidation | null) => {
  const read = rows<InvalidationTuple>(native, sql.invalidation)
  return (network) => toInvalidation(read.get(network))
}

/** Prepares the steps that end matches. */
export const makeRetract = (native: Native) => {
  const invalidation = makeInvalidationRead(native)
  const put = native.prepare(sql.putInvalidation)
  const standing = rows<StandingTuple>(native, sql.standing)
  const standingMembers = rows<StandingTuple>(native, sql.standingMembers)
  const endMatch = native.prepare(sql.endMatch)
  const letGo = native.prepare(sql.letGo)
  const endLetters = native.prepare(sql.endLetters)
  const heard = rows<HeardTuple>(native, sql.heard)
  const reviveDead = native.prepare(sql.reviveDead)
  const retracted = native.prepare(sql.retracted)
  const cutGates = makeCutGates(native)
  const events = makeEvents(native)
  const deliveryRows = bulkInsert(native, "deliveries", deliveryColumns)
  const progress = new RetractProgress()

  const findStanding = (network: NetworkRow, { primary, secondary }: Cursor, limit: number) =>
    standing.all(network.id, primary, secondary, limit)

  /** Ends matches: lets go of what they owe, and owes their retractions to whoever may have heard of them. */
  const end = (
    group: Group,
    network: NetworkRow,
    matches: ReadonlyArray<StandingTuple>,
    terms: EventTerms | undefined,
    now: number,
  ): number => {
    const shown = matches.filter(([, , , position]) => position !== null).length
    let position = shown === 0 ? 0 : network.takePositions(shown)
    const insert = deliveryRows()
    const toActions: Array<number> = []
    for (const [pk, ownPrimary, ownSecondary, shownAt, keptPrimary, keptSecondary] of matches) {
      const primary = keptPrimary ?? ownPrimary
      const secondary = keptSecondary ?? ownSecondary
      endMatch.run(shownAt === null ? null : position++, pk)
      letGo.run(now, network.id, primary, pk)
      endLetters.run(network.id, primary, pk)
      for (const [sink] of heard.all(network.id, primary, pk)) {
        const seq = group.take("delivery", 1)
        const acts = sink === ACTIONS && terms !== undefined
        if (acts) toActions.push(pk)
        insert.add(
          seq,
          network.id,
          sink,
          pk,
          "retracted",
          primary,
          secondary,
          acts ? "delivered" : "pending",
          0,
          0,
          null,
          now,
          acts ? now : null,
          null,
          null,
          null,
          null,
        )
      }
    }
    insert.flush()
    if (terms !== undefined) events.retract(group, toActions, terms, now)
    return shown
  }

  return {
    invalidate: (network: NetworkRow, { from, cause }: { readonly from: Cursor; readonly cause: string }): void => {
      put.run(network.id, from.primary, from.secondary, cause)
    },

    retract: (group: Group, network: NetworkRow, limit: number, terms: EventTerms | undefined, now: number): Step => {
      const recorded = invalidation(network.id)
      if (recorded === null || recorded.retracted) return noStep(network)
      const { from } = recorded
      const first = behind(from)
      const start = progress.next(network, from)
      // Members of an emission that is cut lie before the point; the others of it keep it standing until these have ended.
      const members = standingMembers.all(
        network.id,
        first.primary,
        first.secondary,
        first.primary,
        first.secondary,
        limit,
      )
      const matches = members.length === limit ? [] : findStanding(network, start, limit - members.length)
      const shown = end(group, network, [...members, ...matches], terms, now)
      const ended = members.length + matches.length
      const left = limit - ended
      const revived = left === 0 ? 0 : reviveDead.run(network.id, first.primary, first.secondary, left).changes
      const cut = revived === left ? 0 : cutGates(network.id, from, left - revived)
      const step = { matches: ended, feedPosition: network.feedPosition, shown }
      if (revived + cut === left) {
        const last = matches.at(-1)
        const next = last === undefined ? start : { primary: last[1], secondary: last[2] }
        return { retracted: { ...step, done: false }, reached: { epoch: network.epoch, from, next } }
      }
      // A late find may have been minted before the point that was reached.
      const done = findStanding(network, first, 1).length === 0
      if (done) retracted.run(network.id)
      return { retracted: { ...step, done }, reached: null }
    },

    remember: (network: string, step: Step): Retracted => progress.remember(network, step),
  }
}
