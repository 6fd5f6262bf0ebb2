import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeRuntime } from "@effect/platform-node"
import { layerPostgres, layerSqlite } from "blockwatcher"
import { Effect, Layer } from "effect"
import { startSimulatedDevnet } from "../../server/devnet/simulated/devnet.ts"
import { Bank } from "./bank/client.ts"
import { exchange } from "./exchange.ts"
import { runBank } from "./run-bank.ts"
import { statement } from "./statement.ts"

// Where the exchange keeps its rows: `postgres://…`, or else a file of SQLite that goes with the program.
const database = process.argv[2]

const folder = mkdtempSync(join(tmpdir(), "blockwatcher-exchange-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

const storage =
  database === undefined ? layerSqlite({ path: join(folder, "exchange.db") }) : layerPostgres({ url: database })

/** Logs what everybody has, every few seconds. */
const reporting = Layer.effectDiscard(
  statement.pipe(Effect.flatMap(Effect.logInfo), Effect.delay("3 seconds"), Effect.forever, Effect.forkScoped),
)

const program = Effect.gen(function* () {
  // A chain in memory, with a block every 300 ms and a fork every 10 to 30 seconds.
  const { urls, token } = yield* startSimulatedDevnet({ faults: "none", seed: 1, blockMs: 300 })
  const bank = yield* runBank(join(folder, "bank.db"))
  yield* Effect.logInfo(`the bank is at ${bank}, which shows all that it did`)
  const running = exchange(storage, { nodes: urls, token, start: "latest", confirmations: 0 })
  yield* Layer.launch(reporting.pipe(Layer.provide(running), Layer.provide(Bank.layer(bank))))
}).pipe(Effect.scoped)

NodeRuntime.runMain(program)
