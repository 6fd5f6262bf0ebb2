import type { MikroORM } from "@mikro-orm/core"
import { Migrator } from "@mikro-orm/migrations"
import { CreateTables } from "./create-tables.ts"
import { Account, Deposit, Entry } from "./entities.ts"

/** The exchange's part of the database, brought up to date when it starts. */
export const tables = {
  entities: [Account, Deposit, Entry],
  extensions: [Migrator],
  migrations: {
    migrationsList: [{ name: "create-tables", class: CreateTables }],
    snapshot: false,
    silent: true,
  },
  prepare: (orm: MikroORM) => orm.migrator.up(),
}
