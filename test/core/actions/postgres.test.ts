import { describe } from "@effect/vitest"
import { MikroORM } from "@mikro-orm/postgresql"
import { Effect, Layer } from "effect"
import { beforeAll } from "vitest"
import { EventStore } from "../../../core/actions/event-store.ts"
import { layerPostgres } from "../../../core/storage/postgres.ts"
import { postgresServer } from "../storage/postgres/server.ts"
import { actionsContract } from "./contract.ts"
import { entities, prepare, type World } from "./program.ts"

const postgres = postgresServer()

/** Has the runtime's tables: a copy is made sooner than they are. */
const TEMPLATE = "runtime_template"
let databases = 0

beforeAll(async () => {
  const url = await postgres.server.database(TEMPLATE)
  await Effect.runPromise(Effect.scoped(Layer.build(layerPostgres({ url }))))
})

const runtime = Effect.promise(() => postgres.server.database(`runtime_${++databases}`, TEMPLATE))

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
