import type { DeadLetterFilter, DeadLetterRow } from "../storage.ts"
import { type DeadLetterTuple, filterParts, filterValues, toDeadLetterRow } from "../tuples/dead-letter.ts"
import { type Native, rows } from "./native.ts"
import { deadLetterCountSql, deadLettersSql } from "./sql.ts"

/** The reads of dead letters. */
export const makeDeadLetterReads = (native: Native) => ({
  list: (
    filter: DeadLetterFilter,
    page: { readonly after: number; readonly limit: number },
  ): ReadonlyArray<DeadLetterRow> =>
    rows<DeadLetterTuple>(native, deadLettersSql(filterParts(filter)))
      .all(...filterValues(filter, page.after), page.limit)
      .map(toDeadLetterRow),

  count: (filter: DeadLetterFilter): number =>
    rows<readonly [number]>(native, deadLetterCountSql(filterParts(filter))).get(...filterValues(filter, 0))![0],
})
