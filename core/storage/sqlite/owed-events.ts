import type { NetworkRow } from "../network-row.ts"
import type { EventTerms } from "../events.ts"
import { type ActionRowTuple, toNewEvent } from "../tuples/action-row.ts"
import { makeEvents } from "./events.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { sql } from "./sql.ts"

/** Prepares what makes events of rows of the sink `actions` that were stored without them. */
export const makeOwedEvents = (native: Native) => {
  const events = makeEvents(native)
  const owed = rows<ActionRowTuple>(native, sql.owedToActions)
  const letter = rows<ActionRowTuple>(native, sql.letterToActions)
  const emitted = native.prepare(sql.emitted)

  return {
    /** Up to `limit` owed rows; answers how many there were. */
    emitOwed: (group: Group, network: NetworkRow, terms: EventTerms, limit: number, now: number): number => {
      const found = owed.all(network.id, limit)
      events.add(group, network.id, found.filter(([, kind]) => kind === "match").map(toNewEvent), terms, now)
      const ended = found.filter(([, kind]) => kind === "retracted").map(([, , , pk]) => pk)
      events.retract(group, ended, terms, now)
      for (const [seq] of found) emitted.run(now, seq)
      return found.length
    },

    /** The dead letter of a match that stands; false if it is none. */
    emitLetter: (group: Group, network: NetworkRow, seq: number, terms: EventTerms, now: number): boolean => {
      const found = letter.get(seq, network.id)
      if (found !== undefined) events.add(group, network.id, [toNewEvent(found)], terms, now)
      return found !== undefined
    },
  }
}
