import type { Native, Value } from "./native.ts"

const ROWS = 8

/** The rows of one command on their way in; `flush` belongs behind the last `add`. */
export interface RowBuffer {
  readonly add: (...row: ReadonlyArray<Value>) => void
  readonly flush: () => void
}

/** Prepares inserts of several rows to a statement, which cost much less than one by one. */
export const bulkInsert = (native: Native, table: string, columns: string): (() => RowBuffer) => {
  const width = columns.split(",").length
  const one = `(${Array.from({ length: width }, () => "?").join(", ")})`
  const into = (count: number) =>
    native.prepare(`INSERT INTO ${table} (${columns}) VALUES ${Array.from({ length: count }, () => one).join(", ")}`)
  const many = into(ROWS)
  const single = into(1)

  return () => {
    const waiting: Array<Value> = []
    return {
      add: (...row) => {
        for (const value of row) waiting.push(value)
        if (waiting.length === width * ROWS) many.run(...waiting.splice(0))
      },
      flush: () => {
        while (waiting.length > 0) single.run(...waiting.splice(0, width))
      },
    }
  }
}
