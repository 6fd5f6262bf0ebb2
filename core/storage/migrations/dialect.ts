import type { Migration } from "@mikro-orm/migrations"

/** What a migration writes differently for each database. */
export interface Dialect {
  readonly database: "sqlite" | "postgres"
  /** The type of a key that numbers rows: SQLite makes only an `integer` the row's own number. */
  readonly rowKey: string
  /** A key that the database numbers rows by; no number is given out twice, also when its row is gone. */
  readonly numbered: string
  /** The type of text: in the order of its bytes on every database, whatever the locale. */
  readonly text: string
  /** Whether rows are numbered by sequences, for which concurrent transactions need not wait. */
  readonly sequences: boolean
  /** Further columns of an index that SQLite adds by itself, because its entries end in the row's key. */
  readonly entryKey: (column: string) => string
  /** What a table is made with whose rows are found by their key alone. */
  readonly keyed: string
  /** What a table of rows that are updated soon after they came is made with: room for their next version beside them. */
  readonly updated: string
}

const sqlite: Dialect = {
  database: "sqlite",
  rowKey: "integer",
  numbered: "integer not null primary key autoincrement",
  text: "text",
  sequences: false,
  entryKey: () => "",
  keyed: " without rowid",
  updated: "",
}

const postgres: Dialect = {
  database: "postgres",
  rowKey: "bigint",
  numbered: "bigint not null generated always as identity primary key",
  text: `text collate "C"`,
  sequences: true,
  entryKey: (column) => `, ${column}`,
  keyed: "",
  updated: " with (fillfactor = 70)",
}

export const dialects = { sqlite, postgres }

/** The dialect of the database that a migration runs on. */
export const dialectOf = (driver: Migration["driver"]): Dialect =>
  driver.getPlatform().getDefaultSchemaName() === "public" ? postgres : sqlite
