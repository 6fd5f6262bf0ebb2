import { compareCursors, type Cursor } from "../model/cursor.ts"

/** Groups rows by cursor, in the order of the cursors. */
export const groupByCursor = <Row extends { readonly cursor: Cursor }>(
  rows: ReadonlyArray<Row>,
): ReadonlyArray<{ readonly cursor: Cursor; readonly rows: ReadonlyArray<Row> }> => {
  const groups: Array<{ readonly cursor: Cursor; readonly rows: Array<Row> }> = []
  let current: { readonly cursor: Cursor; readonly rows: Array<Row> } | undefined
  for (const row of rows.toSorted((a, b) => compareCursors(a.cursor, b.cursor))) {
    if (current === undefined || compareCursors(current.cursor, row.cursor) !== 0) {
      current = { cursor: row.cursor, rows: [] }
      groups.push(current)
    }
    current.rows.push(row)
  }
  return groups
}
