/** A value that can be bound. */
export type Value = string | number | null

/** The part of better-sqlite3's statements that is used. */
export interface Statement<Row = unknown> {
  /** Whether it answers rows. */
  readonly reader: boolean
  run(...values: ReadonlyArray<Value>): { readonly changes: number; readonly lastInsertRowid: number | bigint }
  get(...values: ReadonlyArray<Value>): Row | undefined
  all(...values: ReadonlyArray<Value>): Array<Row>
  iterate(...values: ReadonlyArray<Value>): Iterable<Row>
  raw(): Statement<Row>
}

/** The part of better-sqlite3's connections that is used. */
export interface Native {
  readonly inTransaction: boolean
  prepare<Row>(sql: string): Statement<Row>
  exec(sql: string): unknown
  pragma(text: string): unknown
}

/** Prepares a read whose rows are arrays in the order of its columns. */
export const rows = <Row extends ReadonlyArray<Value>>(native: Native, sql: string): Statement<Row> =>
  native.prepare<Row>(sql).raw()
