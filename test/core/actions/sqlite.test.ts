import { describe } from "@effect/vitest"
import { MikroORM } from "@mikro-orm/sqlite"
import { Effect } from "effect"
import { EventStore } from "../../../core/actions/event-store.ts"
import { layerSqlite } from "../../../core/storage/sqlite/layer.ts"
import { databaseFiles } from "../storage/sqlite/files.ts"
import { actionsContract } from "./contract.ts"
import { entities, prepare, type World } from "./program.ts"

const file = databaseFiles()
let worlds = 0

/** Everything in one file. */
const own = Effect.sync((): World => {
  const world = ++worlds
  return {
    name: "runtime",
    storage: layerSqlite({ path: file(`${world}/runtime.db`) }),
    store: EventStore.layerRuntime({ entities, prepare }),
  }
})

/** The program's tables in a file of its own. */
const another = Effect.gen(function* () {
  const world = ++worlds
  const orm = yield* Effect.acquireRelease(
    Effect.promise(() => MikroORM.init({ entities, dbName: file(`${world}.db`), driverOptions: { timeout: 0 } })),
    (opened) => Effect.promise(() => opened.close(true)),
  )
  yield* Effect.promise(() => prepare(orm))
  return {
    name: "program",
    storage: layerSqlite({ path: file(`${world}/runtime.db`) }),
    store: EventStore.layer(orm),
  } satisfies World
})

describe("actions that write the runtime's own SQLite database", () => actionsContract(own))
describe("actions that write another SQLite database", () => actionsContract(another, ["running", "calls", "runners"]))
