import { defineEntity, type MikroORM, p } from "@mikro-orm/core"
import { Context, Effect, Layer, type Scope } from "effect"
import type { Action, Requirements } from "../../../core/actions/action.ts"
import { Actions } from "../../../core/actions/actions.ts"
import { EventStore } from "../../../core/actions/event-store.ts"
import type { DeliveryState, DeliveryView } from "../../../core/actions/views.ts"
import type { MatchState } from "../../../core/storage/events.ts"
import { Storage } from "../../../core/storage/storage.ts"
import { waitUntil } from "../../support/scripted-source.ts"

/** Somebody's money. */
export const Account = defineEntity({
  name: "Account",
  tableName: "accounts",
  properties: {
    id: p.text().primary(),
    tenant: p.text().nullable(),
    balance: p.text(),
    version: p.integer().version(),
  },
})

/** What was credited to an account; of no version, for it never changes. */
export const Credit = defineEntity({
  name: "Credit",
  tableName: "credits",
  properties: {
    id: p.text().primary(),
    tenant: p.text().nullable(),
    amount: p.text(),
    account: () => p.manyToOne(Account).nullable(),
  },
})

const TABLES = [
  `create table if not exists accounts (id text not null primary key, tenant text, balance text not null,
    version integer not null default 1)`,
  `create table if not exists credits (id text not null primary key, tenant text, amount text not null,
    account_id text references accounts (id))`,
]

export const entities = [Account, Credit]

export const prepare = async (orm: MikroORM): Promise<void> => {
  for (const table of TABLES) await (orm.em.getConnection() as any).execute(table)
}

/** The databases of a program, of which any number of processes may be imitated. */
export interface World {
  readonly name: string
  readonly storage: Layer.Layer<Storage, unknown>
  readonly store: Layer.Layer<EventStore, unknown, Storage>
}

/** A runtime's actions, started in the present scope. */
export interface Started {
  readonly actions: Actions["Service"]
  readonly orm: MikroORM
  /** Runs a statement in the database that actions write. */
  readonly sql: (statement: string) => Effect.Effect<ReadonlyArray<any>>
  /** The same, in that of the runtime. */
  readonly runtimeSql: (statement: string) => Effect.Effect<ReadonlyArray<any>>
  /** Waits until a delivery of the action is in the state, and answers it. */
  readonly until: (state: DeliveryState, action: string, count?: number) => Effect.Effect<DeliveryView>
}

export const SETTINGS = { concurrency: 16, drainTimeoutMs: 5_000, retentionMs: 60_000 }

const execute = (orm: MikroORM, statement: string) =>
  Effect.promise(() => (orm.em.getConnection() as any).execute(statement) as Promise<ReadonlyArray<any>>)

/** @param states what the chain says of matches */
export const start = <A extends Action = never>(
  world: World,
  actions: ReadonlyArray<A>,
  options: {
    readonly states?: ReadonlyMap<string, MatchState>
    readonly settings?: Partial<typeof SETTINGS>
  } = {},
): Effect.Effect<Started, never, Scope.Scope | Requirements<A>> =>
  Effect.gen(function* () {
    const storage = Layer.effect(
      Storage,
      Effect.map(Storage, (present) =>
        Storage.of({ ...present, matchState: (id) => Effect.succeed(options.states?.get(id) ?? null) }),
      ),
    ).pipe(Layer.provide(world.storage))
    const layer = Actions.layer<A>({ actions, settings: { ...SETTINGS, ...options.settings } }).pipe(
      Layer.provideMerge(world.store),
      Layer.provideMerge(storage),
      Layer.fresh,
    )
    const context = yield* Layer.build(layer)
    const service = Context.get(context, Actions)
    const { orm } = Context.get(context, EventStore)
    const runtime = yield* Context.get(context, Storage).orm({
      entities: [],
      discovery: { warnWhenNoEntities: false },
    })
    return {
      actions: service,
      orm,
      sql: (statement: string) => execute(orm, statement),
      runtimeSql: (statement: string) => execute(runtime, statement),
      until: (state: DeliveryState, action: string, count = 1) =>
        Effect.gen(function* () {
          yield* waitUntil(
            `${count} deliveries to ${action} are ${state}`,
            Effect.map(service.list({ state, action }), ({ deliveries }) => deliveries.length >= count).pipe(
              Effect.orDie,
            ),
          )
          return (yield* service.list({ state, action })).deliveries.at(-1)!
        }).pipe(Effect.orDie),
    }
  }).pipe(Effect.orDie) as never
