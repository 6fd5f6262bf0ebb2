import { describe } from "@effect/vitest"
import { MikroORM } from "@mikro-orm/postgresql"
import { Effect } from "effect"
import { EventStore } from "../../../core/actions/event-store.ts"
import { layerPostgres } from "../../../core/storage/postgres.ts"
import { runtimeDatabases } from "../storage/postgres/databases.ts"
import { postgresServer } from "../storage/postgres/server.ts"
import { actionsContract } from "./contract.ts"
import { entities, prepare, type World } from "./program.ts"

const postgres = postgresServer()

const runtime = runtimeDatabases(() => postgres.server)

/** Everything in one database. */
const own = Effect.map(runtime, (url): World => ({
  name: "runtime",
  storage: layerPostgres({ url }),
  store: EventStore.layerRuntime({ entities, prepare }),
}))

/** The program's tables in a database of its own. */
const another = Effect.gen(function* () {
  const url = yield* runtime
  const clientUrl = yield* postgres.database
  const orm = yield* Effect.acquireRelease(
    Effect.promise(() => MikroORM.init({ entities, clientUrl })),
    (opened) => Effect.promise(() => opened.close(true)),
  )
  yield* Effect.promise(() => prepare(orm))
  return { name: "program", storage: layerPostgres({ url }), store: EventStore.layer(orm) } satisfies World
})

describe("actions that write the runtime's own PostgreSQL database", { concurrent: true }, () => actionsContract(own))
describe("actions that write another PostgreSQL database", { concurrent: true }, () =>
  actionsContract(another, ["calls"]),
)
