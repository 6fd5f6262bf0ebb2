import { places, type Session } from "./session.ts"
import type { DeliveryState } from "./views.ts"

const AGAIN = `update blockwatcher_action_deliveries
  set state = 'waiting', due = ?, attempts = 0, code = null, reason = null, reader = null, settled_at = null`

const CANCEL = "update blockwatcher_action_deliveries set state = 'cancelled', settled_at = ?"

/** Lets a delivery be run again from the beginning; answers whether it was in one of these states. */
export const startAgain = async (
  session: Session,
  pk: number,
  from: ReadonlyArray<DeliveryState>,
  now: number,
): Promise<boolean> => {
  const changed = await session.run(`${AGAIN} where pk = ? and state in ${places(1, from.length)}`, [now, pk, ...from])
  return changed > 0
}

/** Gives a delivery up; answers whether it was in one of these states. */
export const cancelDelivery = async (
  session: Session,
  pk: number,
  from: ReadonlyArray<DeliveryState>,
  now: number,
): Promise<boolean> => {
  const changed = await session.run(`${CANCEL} where pk = ? and state in ${places(1, from.length)}`, [now, pk, ...from])
  return changed > 0
}

const changeMany =
  (update: string, condition: string) =>
  async (
    session: Session,
    pks: ReadonlyArray<number>,
    from: ReadonlyArray<DeliveryState>,
    now: number,
  ): Promise<ReadonlySet<number>> => {
    const rows = await session.all<{ readonly pk: number | string }>(
      `${update} where pk in ${places(1, pks.length)} and state in ${places(1, from.length)} ${condition} returning pk`,
      [now, ...pks, ...from],
    )
    return new Set(rows.map(({ pk }) => Number(pk)))
  }

/** The same with many; answers which of them were in one of these states. One of unknown outcome is left. */
export const startManyAgain = changeMany(AGAIN, "and (state <> 'parked' or code <> 'outcome_unknown')")

/** The same with many; answers which of them were in one of these states. */
export const cancelMany = changeMany(CANCEL, "")

/** Records the result of a call of which only the intent was; answers whether there was one. */
export const setResult = async (
  session: Session,
  key: string,
  place: number,
  result: string | null,
): Promise<boolean> => {
  const changed = await session.run(
    `update blockwatcher_provider_calls set state = 'done', result = ? where delivery = ? and place = ? and state = 'intent'`,
    [result, key, place],
  )
  return changed > 0
}
