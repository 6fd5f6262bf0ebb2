import { Effect } from "effect"
import type { DeadLetterFilter, DeadLetterRow } from "../storage.ts"
import { type DeadLetterTuple, filterParts, filterValues, toDeadLetterRow } from "../tuples/dead-letter.ts"
import type { Session } from "./connection.ts"
import type { QueryFailed } from "./error.ts"
import { deadLetterCountSql, deadLettersSql } from "./sql.ts"

export const readDeadLetters = (
  session: Session,
  filter: DeadLetterFilter,
  page: { readonly after: number; readonly limit: number },
): Effect.Effect<ReadonlyArray<DeadLetterRow>, QueryFailed> =>
  Effect.map(
    session.all<DeadLetterTuple>(deadLettersSql(filterParts(filter)), [
      ...filterValues(filter, page.after),
      page.limit,
    ]),
    (found) => found.map(toDeadLetterRow),
  )

export const countDeadLetters = (session: Session, filter: DeadLetterFilter): Effect.Effect<number, QueryFailed> =>
  Effect.map(
    session.all<readonly [number]>(deadLetterCountSql(filterParts(filter)), filterValues(filter, 0)),
    ([row]) => row![0],
  )
