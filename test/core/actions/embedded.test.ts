import { describe, it } from "@effect/vitest"
import type { MikroORM } from "@mikro-orm/core"
import { Context, Deferred, Effect, Layer, Schema } from "effect"
import {
  Action,
  Actions,
  Blockwatcher,
  EventStore,
  layerSqlite,
  Match,
  Provider,
  Resources,
} from "../../../core/index.ts"
import { ScriptedFeed, scriptedSource, waitUntil } from "../../support/scripted-source.ts"
import { allTransfers, transfer } from "../engine/faults/support.ts"
import { Credit, entities, prepare } from "./program.ts"

/** What an action needs of its program. */
class Rate extends Context.Service<Rate, { readonly percent: bigint }>()("test/Rate") {}

const Transfers = Match.of("all", Schema.Struct({ args: Schema.Struct({ value: Schema.BigIntFromString }) }))

/** Keeps a credit for each match that stands. */
const credit = Action.make({
  name: "credit",
  on: Transfers,
  run: ({ event, em, matches }) =>
    Effect.gen(function* () {
      const { percent } = yield* Rate
      const state = yield* matches.state(event.matchId)
      const present = yield* Effect.promise(() => em.findOne(Credit, event.matchId))
      if (state?.canonical !== true) {
        if (present !== null) em.remove(present)
      } else if (present === null) {
        const amount = `${(event.payload.args.value * percent) / 100n}`
        em.create(Credit, { id: event.matchId, amount })
      }
    }),
})

const program = (feed: ScriptedFeed, actions: ReadonlyArray<Action<never, never>> = []) => {
  let orm: MikroORM | undefined
  const layer = Blockwatcher.layer({
    storage: layerSqlite({ path: ":memory:" }),
    plugins: [scriptedSource(feed)],
    resources: {
      networks: [{ id: "test", module: "scripted", config: {} }],
      monitors: [allTransfers(["actions"])],
    },
    actions: [credit, ...actions],
    eventStore: EventStore.layerRuntime({
      entities,
      prepare: (made) => {
        orm = made
        return prepare(made)
      },
    }),
  }).pipe(Layer.provide(Layer.succeed(Rate, { percent: 50n })))
  const amounts = Effect.promise(async () => {
    const rows = await (orm!.em.getConnection() as any).execute(
      "select amount from credits order by length(amount), amount",
    )
    return rows.map(({ amount }: { readonly amount: string }) => amount).join(" ") as string
  })
  return { layer, amounts }
}

describe("a program with actions", () => {
  it.live("agrees with the chain: matches are credited, retractions taken back, also when a fork wins back", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const { layer, amounts } = program(feed)
      const context = yield* Layer.build(layer)
      const until = (expected: string) =>
        waitUntil(
          `the credits are ${expected}`,
          Effect.map(amounts, (present) => present === expected),
        )
      const blocks = [transfer(2), transfer(4), transfer(6)].map((event) => [event])
      feed.append(...blocks)
      yield* until("1 2 3")
      feed.fork(1, "x", [transfer(100)], [], [])
      yield* until("1 50")
      feed.fork(1, "", ...blocks.slice(1), [], [], [])
      yield* until("1 2 3")
      const actions = Context.get(context, Actions)
      yield* waitUntil(
        "every delivery has succeeded",
        Effect.map(actions.counts, (counts) => counts.every(({ state }) => state === "succeeded")).pipe(Effect.orDie),
      )
    }),
  )

  it.live("writes go on while an action waits for its provider", () =>
    Effect.gen(function* () {
      const feed = new ScriptedFeed()
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const ask = Provider.operation({
        name: "ask",
        repeat: "keyed",
        input: Schema.String,
        output: Schema.Null,
        call: () => Effect.as(Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer)), null),
      })
      const slow = Action.make({
        name: "slow",
        on: Transfers,
        calls: { ask },
        run: ({ event, em, calls }) =>
          Effect.gen(function* () {
            yield* Effect.promise(() => em.find(Credit, {}))
            yield* calls.ask(event.matchId)
          }),
      })
      const { layer, amounts } = program(feed, [slow])
      const context = yield* Layer.build(layer)
      feed.append([transfer(2)])
      yield* Deferred.await(asked)
      feed.append([transfer(4)], [transfer(6)])
      yield* waitUntil(
        "they are credited",
        Effect.map(amounts, (present) => present === "1 2 3"),
      )
      yield* Context.get(context, Resources).putMonitor(allTransfers(["actions"], { id: "later" }))
      yield* Deferred.succeed(answer, undefined)
      const actions = Context.get(context, Actions)
      yield* waitUntil(
        "it ends",
        Effect.map(
          actions.list({ action: "slow", state: "succeeded" }),
          ({ deliveries }) => deliveries.length === 3,
        ).pipe(Effect.orDie),
      )
    }),
  )
})
