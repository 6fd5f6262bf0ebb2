import type { NewEvent } from "../events.ts"

/** A row of the sink `actions` with what its event says, in the order of the columns that both databases select. */
export type ActionRowTuple = readonly [
  seq: number,
  kind: "match" | "retracted",
  monitor: string,
  pk: number,
  matchId: string,
  life: number,
  primary: number,
  emission: string | null,
]

export const toNewEvent = ([, , monitor, pk, matchId, life, primary, emission]: ActionRowTuple): NewEvent => ({
  monitor,
  pk,
  matchId,
  life,
  primary,
  emission,
})
