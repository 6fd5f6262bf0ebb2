import { Effect } from "effect"
import type { DeadLetterFilter, DeadLetterRow } from "../storage.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import type { Value } from "./native.ts"
import { deadLetterCountSql, deadLettersSql, type DeadFilter } from "./sql.ts"

type DeadTuple = readonly [
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

const toRow = (tuple: DeadTuple): DeadLetterRow => {
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

const parts = ({ sink, monitor }: DeadLetterFilter): DeadFilter => ({
  sink: sink !== undefined,
  monitor: monitor !== undefined,
})

const values = ({ network, sink, monitor }: DeadLetterFilter, after: number): Array<Value> => {
  const bound: Array<Value> = [network]
  if (sink !== undefined) bound.push(sink)
  bound.push(after)
  if (monitor !== undefined) bound.push(monitor)
  return bound
}

export const readDeadLetters = (
  session: Session,
  filter: DeadLetterFilter,
  page: { readonly after: number; readonly limit: number },
): Effect.Effect<ReadonlyArray<DeadLetterRow>, QueryFailed> =>
  Effect.map(
    session.all<DeadTuple>(deadLettersSql(parts(filter)), [...values(filter, page.after), page.limit]),
    (found) => found.map(toRow),
  )

export const countDeadLetters = (session: Session, filter: DeadLetterFilter): Effect.Effect<number, QueryFailed> =>
  Effect.map(session.all<readonly [number]>(deadLetterCountSql(parts(filter)), values(filter, 0)), ([row]) => row![0])
