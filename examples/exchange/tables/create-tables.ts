import { Migration } from "@mikro-orm/migrations"

/** Makes the tables, the same on SQLite and PostgreSQL. */
export class CreateTables extends Migration {
  override up(): void {
    this.addSql(`create table exchange_accounts (
      customer text not null primary key,
      balance text not null,
      version integer not null default 1
    )`)
    this.addSql(`create table exchange_deposits (
      match_id text not null primary key,
      customer text not null,
      amount text not null,
      credited boolean not null,
      life integer not null,
      version integer not null default 1
    )`)
    this.addSql(`create table exchange_entries (
      id text not null primary key,
      customer text not null,
      amount text not null,
      receipt integer,
      letter integer,
      version integer not null default 1
    )`)
  }
}
