import { Schema } from "effect"

/** The database was written by a newer version: it records a migration that this build does not know. */
export class DatabaseTooNew extends Schema.TaggedError<DatabaseTooNew>()("DatabaseTooNew", {
  database: Schema.String,
  /** The newest migration that the database records. */
  found: Schema.String,
  /** The newest migration of this build. */
  known: Schema.String,
}) {
  override get message() {
    return (
      `database ${this.database} was written by a newer version: it holds migration '${this.found}', this version knows ` +
      `those up to '${this.known}'. Start the newer version, or restore a backup made before the upgrade.`
    )
  }
}

/** The database cannot be opened or brought up to date. `reason` says what happened, `advice` what to do. */
export class DatabaseUnusable extends Schema.TaggedError<DatabaseUnusable>()("DatabaseUnusable", {
  database: Schema.String,
  reason: Schema.String,
  advice: Schema.String,
}) {
  override get message() {
    return `database ${this.database} cannot be opened: ${this.reason}. ${this.advice}`
  }
}

/** Why a database is of no use. */
export type OpenError = DatabaseTooNew | DatabaseUnusable
