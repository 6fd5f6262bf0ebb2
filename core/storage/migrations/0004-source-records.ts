import { Migration } from "@mikro-orm/migrations"
import { dialectOf } from "./dialect.ts"

/** What sources record to know after a restart. */
export class SourceRecords extends Migration {
  override up(): void {
    const { text } = dialectOf(this.driver)
    this.addSql(`create table source_records (
      network ${text} not null,
      record_key ${text} not null,
      value ${text} not null,
      primary_pos bigint not null,
      secondary_pos bigint not null,
      primary key (network, record_key, value)
    )`)
    this.addSql(`create index source_records_cursor on source_records (network, primary_pos, secondary_pos)`)
  }
}
