import { Effect } from "effect"
import { contend, startClock } from "../contender.ts"
import { open } from "../../core/storage/sqlite/open.ts"
import { deliveryColumns, matchColumns } from "../../core/storage/sqlite/sql.ts"
import { type Native, rows, type Value } from "../../core/storage/sqlite/native.ts"

/**
 * The floor of storing: the rows that a run of the pipeline left in one database, inserted into the same tables with the
 * same indexes of a new one, one statement a row and a hundred matches a transaction.
 */
export interface InsertsTask {
  /** The database with the rows. */
  readonly from: string
  readonly database: string
}

const GROUP = 100

const readAll = (native: Native, table: string, columns: string, order: string) =>
  rows<ReadonlyArray<Value>>(native, `SELECT ${columns} FROM ${table} ORDER BY ${order}`).all()

const insertInto = (native: Native, table: string, columns: string) =>
  native.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.replaceAll(/[^,]+/g, "?")})`)

const insertAll = Effect.fnUntraced(function* ({ from, database }: InsertsTask) {
  const source = (yield* open(from)).native
  const matches = readAll(source, "matches", matchColumns, "pk")
  const deliveries = readAll(source, "deliveries", deliveryColumns, "seq")
  const { native } = yield* open(database)
  const insertMatch = insertInto(native, "matches", matchColumns)
  const insertDelivery = insertInto(native, "deliveries", deliveryColumns)
  const begin = native.prepare("BEGIN IMMEDIATE")
  const commit = native.prepare("COMMIT")
  const read = startClock()
  for (let start = 0; start < matches.length; start += GROUP) {
    begin.run()
    for (let i = start; i < Math.min(start + GROUP, matches.length); i++) {
      insertMatch.run(...matches[i]!)
      insertDelivery.run(...deliveries[i]!)
    }
    commit.run()
  }
  return read(matches.length)
})

await contend((task: InsertsTask) => Effect.runPromise(Effect.scoped(insertAll(task))))
