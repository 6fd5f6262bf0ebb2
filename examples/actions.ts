import { NodeRuntime } from "@effect/platform-node"
import { defineEntity, p } from "@mikro-orm/core"
import { Effect, Layer, Schema } from "effect"
import { Action, Blockwatcher, EventStore, EventType, layerSqlite, Match, Provider } from "blockwatcher"
import evmRpc from "blockwatcher/plugins/evm-rpc"

/** A deposit that stands, by the id of the match that it comes from. */
export const Deposit = defineEntity({
  name: "Deposit",
  tableName: "deposits",
  properties: { id: p.text().primary(), amount: p.text() },
})

const Transfers = Match.of("deposits", Schema.Struct({ args: Schema.Struct({ value: Schema.BigInt }) }))

const Credited = EventType.make({
  name: "credited",
  version: 1,
  schema: Schema.Struct({ deposit: Schema.String, amount: Schema.BigInt }),
})

/** Keeps a row for each transfer that stands, whatever it hears and in whatever order. */
const credit = Action.make({
  name: "credit",
  on: Transfers,
  run: ({ event, em, emit, matches }) =>
    Effect.gen(function* () {
      const state = yield* matches.state(event.matchId)
      const deposit = yield* Effect.tryPromise(() => em.findOne(Deposit, event.matchId))
      if (state?.canonical === true && deposit === null) {
        const amount = event.payload.args.value
        em.create(Deposit, { id: event.matchId, amount: `${amount}` })
        yield* emit(Credited, { deposit: event.matchId, amount })
      }
      if (state?.canonical === false && deposit !== null) em.remove(deposit)
    }),
})

/** The provider knows repeats by the key, and sends the same letter once. */
const sendMail = Provider.operation({
  name: "mail.send",
  repeat: "keyed",
  input: Schema.Struct({ to: Schema.String, text: Schema.String }),
  output: Schema.Struct({ id: Schema.String }),
  call: ({ to, text }, { key }) => Effect.as(Effect.log(`mail to ${to}: ${text}`), { id: key.slice(0, 8) }),
})

const notify = Action.make({
  name: "notify",
  on: Credited,
  calls: { sendMail },
  run: ({ event, calls }) => calls.sendMail({ to: "books@example.org", text: `${event.payload.amount} were credited` }),
})

export const actions = [credit, notify]

/** The program's tables, in the runtime's own database. */
export const eventStore = EventStore.layerRuntime({
  entities: [Deposit],
  prepare: (orm) =>
    orm.em
      .getConnection()
      .execute("create table if not exists deposits (id text not null primary key, amount text not null)"),
})

const runtime = (url: string) =>
  Blockwatcher.layer({
    storage: layerSqlite({ path: "data/deposits.db" }),
    plugins: [evmRpc],
    actions,
    eventStore,
    resources: {
      networks: [{ id: "devnet", module: "evm-rpc", config: { chain_id: 31337, urls: [url], confirmations: 12 } }],
      monitors: [
        {
          id: "deposits",
          network: "devnet",
          selector: {
            kind: "event",
            event: "event Transfer(address indexed from, address indexed to, uint256 value)",
          },
          sinks: ["actions"],
        },
      ],
    },
  })

if (import.meta.main) NodeRuntime.runMain(Layer.launch(runtime(process.argv[2] ?? "http://127.0.0.1:8545")))
