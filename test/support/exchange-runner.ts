import { existsSync, readFileSync } from "node:fs"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { layerPostgres, layerSqlite } from "../../core/index.ts"
import { Bank } from "../../examples/exchange/bank/client.ts"
import { exchange } from "../../examples/exchange/exchange.ts"
import { actionStorage, bankThrough } from "./exchange-failpoints.ts"
import { makeFailpoints } from "./failpoints.ts"

// The exchange of the examples as a process that comes to the failpoint in a file, which it reads at the start, if it is
// there, and at each SIGUSR2. It is told everything as JSON in its first argument.

/** What the process is told. */
export interface RunnerOptions {
  readonly database: string
  readonly nodes: ReadonlyArray<string>
  readonly token: string
  readonly bank: string
  readonly failpoint: string
}

const { database, nodes, token, bank, failpoint } = JSON.parse(process.argv[2]!) as RunnerOptions

const failpoints = makeFailpoints()
const read = () => failpoints.set(JSON.parse(readFileSync(failpoint, "utf8")))
process.on("SIGUSR2", read)
if (existsSync(failpoint)) read()

const storage = database.startsWith("sqlite:")
  ? layerSqlite({ path: database.slice("sqlite:".length) })
  : layerPostgres({ url: database })

const watched = { nodes, token, start: 1, confirmations: 0 }
const running = exchange(actionStorage(storage, failpoints), watched).pipe(
  Layer.provide(bankThrough(Bank.layer(bank), failpoints)),
)

const open = Layer.effectDiscard(Effect.sync(() => process.stdout.write("exchange: open\n")))

NodeRuntime.runMain(Layer.launch(Layer.provideMerge(open, running)))
