import { Migration } from "@mikro-orm/migrations"
import { dialectOf } from "./dialect.ts"

/** What taking back needs: where a network started, how far rows were lost, what is under way; a version of the resources. */
export class TakenBack extends Migration {
  override up(): void {
    const { text } = dialectOf(this.driver)
    for (const column of ["start_primary", "start_secondary", "high_primary", "swept_primary", "pruned_primary"]) {
      this.addSql(`alter table pipelines add column ${column} bigint`)
    }
    this.addSql(`update pipelines set high_primary = checkpoint_primary`)
    this.addSql(`create table invalidations (
      network ${text} not null primary key,
      from_primary bigint not null,
      from_secondary bigint not null,
      cause ${text} not null,
      retracted integer not null default 0
    )`)
    this.addSql(`create index deliveries_dead_retracted on deliveries (network, primary_pos, secondary_pos)
      where kind = 'retracted' and died is not null`)
    this.addSql(`insert into counters (name, value) values ('resources', 0)`)
  }
}
