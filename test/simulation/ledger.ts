import { defineEntity, type MikroORM, p } from "@mikro-orm/core"
import { Effect, Schema } from "effect"
import { Action, Actions, EventStore, Match } from "../../core/index.ts"
import { keyOf } from "./oracle.ts"
import type { MonitorSetup } from "./setup.ts"
import type { World } from "./world.ts"

/** The sink of durable actions, which some worlds have. */
export const ACTIONS = "actions"

/** Monitors whose matches are kept in the table: few, since each costs a transaction. */
const KEPT: ReadonlySet<string> = new Set(["large", "burst", "children-large"])

/** One of six seeds has an action: worlds of one node and of several. */
export const hasLedger = (seed: number): boolean => seed % 12 === 1 || seed % 12 === 4

/** The monitors of a world with an action: some of them tell it, too. */
export const withLedger = (monitors: ReadonlyArray<MonitorSetup>): ReadonlyArray<MonitorSetup> =>
  monitors.map((monitor) => (KEPT.has(monitor.id) ? { ...monitor, sinks: [...monitor.sinks, ACTIONS] } : monitor))

/** A match that stands. */
const Entry = defineEntity({
  name: "Entry",
  tableName: "ledger",
  properties: { id: p.text().primary(), place: p.text(), value: p.text() },
})

const TABLE =
  "create table if not exists ledger (id text not null primary key, place text not null, value text not null)"

const statement = (orm: MikroORM, text: string): Promise<ReadonlyArray<any>> =>
  (orm.em.getConnection() as unknown as { execute(text: string): Promise<ReadonlyArray<any>> }).execute(text)

/** The runtime's own database, with the table of the action. */
export const ledgerStore = EventStore.layerRuntime({ entities: [Entry], prepare: (orm) => statement(orm, TABLE) })

const eventSchema = Schema.Struct({
  block: Schema.Struct({ hash: Schema.String }),
  log: Schema.Struct({ index: Schema.Int }),
  args: Schema.Struct({ value: Schema.String }),
})

/** Makes the table agree with whether the match stands. */
export const keepLedger = ({ monitors }: World) =>
  Action.make({
    name: "keep",
    on: monitors.filter(({ sinks }) => sinks.includes(ACTIONS)).map(({ id }) => Match.of(id, eventSchema)),
    // Of the simulated clock.
    timeoutMs: 20_000,
    run: ({ event, em, matches }) =>
      Effect.gen(function* () {
        const { matchId, monitor, payload } = event
        const state = yield* matches.state(matchId)
        const entry = yield* Effect.promise(() => em.findOne(Entry, matchId))
        if (state?.canonical !== true) {
          if (entry !== null) em.remove(entry)
        } else if (entry === null) {
          const place = keyOf(monitor, payload.block.hash, payload.log.index)
          em.create(Entry, { id: matchId, place, value: payload.args.value })
        }
      }),
  })

/** What the table holds, as a receiver holds it. */
export const readLedger = (store: EventStore["Service"]) =>
  Effect.map(
    Effect.promise(() => statement(store.orm, "select id, place, value from ledger")),
    (rows) => ({
      setup: { id: ACTIONS },
      held: new Map(
        rows.map(({ id, place, value }) => [id as string, { key: place as string, value: value as string }]),
      ),
    }),
  )

/** Deliveries that are not over yet, and those that can only be ended by a person. */
export const ledgerDebts = (actions: Actions["Service"]) =>
  Effect.map(actions.counts, (counts) => {
    const sum = (...states: ReadonlyArray<string>) =>
      counts.reduce((all, { state, deliveries }) => (states.includes(state) ? all + deliveries : all), 0)
    return { open: sum("waiting", "running"), stuck: sum("failed", "parked") }
  })
