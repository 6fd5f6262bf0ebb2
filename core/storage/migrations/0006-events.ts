import { Migration } from "@mikro-orm/migrations"
import { eventTables } from "../event-tables.ts"
import { dialectOf } from "./dialect.ts"

/** The tables of durable actions. */
export class Events extends Migration {
  override up(): void {
    for (const statement of eventTables(dialectOf(this.driver))) this.addSql(statement)
  }
}
