import type { DeliveryRow } from "../storage.ts"

/** A delivery row with its match, in the order of the columns that both databases select. */
export type DeliveryTuple = readonly [
  seq: number,
  monitor: string,
  matchId: string,
  life: number,
  kind: DeliveryRow["kind"],
  primary: number,
  secondary: number,
  state: DeliveryRow["state"],
  attempts: number,
  slot: number,
  digest: string | null,
  time: number | null,
  payload: string,
]

export const toDeliveryRow =
  (network: string, sink: string) =>
  (tuple: DeliveryTuple): DeliveryRow => {
    const [seq, monitor, matchId, life, kind, primary, secondary, state, attempts, slot, digest, time, payload] = tuple
    return {
      seq,
      network,
      sink,
      monitor,
      matchId,
      life,
      kind,
      cursor: { primary, secondary },
      state,
      attempts,
      slot: slot === 1,
      digest,
      payload,
      ...(time === null ? {} : { time }),
    }
  }
