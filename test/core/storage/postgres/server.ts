import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { Postgres } from "../../../support/postgres.ts"

/** A server for the tests of a file, with a new database for each that asks. */
export const postgresServer = () => {
  let server: Postgres | null = null
  let databases = 0
  beforeAll(async () => {
    server = await Postgres.start()
  })
  afterAll(() => server?.close())
  return {
    /** The server, once the tests run. */
    get server(): Postgres {
      return server!
    },
    /** Makes an empty database, and answers its address. */
    database: Effect.promise(() => server!.database(`test_${++databases}`)),
  }
}
