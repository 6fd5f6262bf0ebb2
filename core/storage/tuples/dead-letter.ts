import type { DeadLetterFilter, DeadLetterRow, NoReplay } from "../storage.ts"

/** A dead letter with its match, in the order of the columns that both databases select. */
export type DeadLetterTuple = readonly [
  seq: number,
  died: number,
  network: string,
  sink: string,
  monitor: string,
  matchId: string,
  life: number,
  primary: number,
  secondary: number,
  kind: DeadLetterRow["kind"],
  attempts: number,
  reason: string | null,
  createdAt: number,
  payload: string,
  ended: number,
]

export const toDeadLetterRow = (tuple: DeadLetterTuple): DeadLetterRow => {
  const [seq, died, network, sink, monitor, matchId, life, primary, secondary, kind] = tuple
  const [, , , , , , , , , , attempts, reason, createdAt, payload, ended] = tuple
  return {
    seq,
    died,
    network,
    sink,
    monitor,
    matchId,
    life,
    cursor: { primary, secondary },
    kind,
    attempts,
    reason: reason ?? "",
    createdAt,
    payload: kind === "match" ? payload : null,
    ended: ended === 1,
  }
}

/** Which parts of the filter the statement has. */
export const filterParts = ({ sink, monitor }: DeadLetterFilter) => ({
  sink: sink !== undefined,
  monitor: monitor !== undefined,
})

/** The parameters that the statement's filter takes. */
export const filterValues = ({ network, sink, monitor }: DeadLetterFilter): ReadonlyArray<string> =>
  [network, sink, monitor].filter((value) => value !== undefined)

/** Why a replay of this row is refused, or null. */
export const noReplay = (row: Pick<DeadLetterRow, "kind" | "ended" | "payload">): NoReplay | null => {
  if (row.kind === "retracted") return "NO_REPLAY_RETRACTED"
  if (row.ended) return "RETRACTED"
  return row.payload === null ? "NO_REPLAY_PAYLOAD" : null
}
