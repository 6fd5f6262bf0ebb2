import { deliveryId } from "../../model/sink-event.ts"
import { ENCODING, type EventTerms, matchType, type NewEvent } from "../events.ts"
import { bulkInsert } from "./bulk-insert.ts"
import type { Group } from "./group.ts"
import { type Native, rows } from "./native.ts"
import { actionDeliveryColumns, eventColumns, sql } from "./sql.ts"

/** Prepares what writes the events of matches, with their deliveries to actions. */
export const makeEvents = (native: Native) => {
  const last = rows<readonly [seq: number]>(native, sql.lastEvent)
  const eventOf = rows<readonly [seq: number]>(native, sql.eventOf)
  const eventRows = bulkInsert(native, "blockwatcher_events", eventColumns)
  const deliveryRows = bulkInsert(native, "blockwatcher_action_deliveries", actionDeliveryColumns)
  const retractEvent = native.prepare(sql.retractEvent)
  const retractTo = native.prepare(sql.retractTo)

  /** The number of the next event. */
  const next = (): number => (last.get()?.[0] ?? 0) + 1

  return {
    /** Writes events of matches; each goes to the actions that are subscribed to its monitor. */
    add: (
      group: Group,
      network: string,
      events: ReadonlyArray<NewEvent>,
      { actions, traceparent = null }: Partial<EventTerms>,
      now: number,
    ): void => {
      if (events.length === 0) return
      group.wroteEvents = true
      const insertEvent = eventRows()
      const insertDelivery = deliveryRows()
      let seq = next()
      for (const { monitor, pk, matchId, life, primary, emission } of events) {
        insertEvent.add(
          seq,
          deliveryId(matchId, life, "match"),
          matchType(monitor),
          1,
          ENCODING,
          traceparent,
          0,
          now,
          pk,
          matchId,
          life,
          "match",
          network,
          primary,
          emission,
        )
        for (const action of actions?.get(monitor) ?? []) {
          insertDelivery.add(seq, action, matchId, "waiting", 0, now, now)
        }
        seq++
      }
      insertEvent.flush()
      insertDelivery.flush()
    },

    /** Takes back the events of matches that ended: whoever got one hears of it. Matches that none was made of are left out. */
    retract: (group: Group, pks: ReadonlyArray<number>, { traceparent = null }: EventTerms, now: number): void => {
      let seq: number | null = null
      for (const pk of pks) {
        const taken = eventOf.get(pk)?.[0]
        if (taken === undefined) continue
        group.wroteEvents = true
        seq = seq === null ? next() : seq + 1
        retractEvent.run(seq, traceparent, now, taken)
        retractTo.run(seq, now, now, taken)
      }
    },
  }
}
