import type { MikroORM } from "@mikro-orm/core"
import { Effect, Layer } from "effect"
import { Storage } from "../../core/storage/storage.ts"
import { Bank } from "../../examples/exchange/bank/client.ts"
import type { makeFailpoints } from "./failpoints.ts"
import { watch } from "./watched-orm.ts"

type Failpoints = ReturnType<typeof makeFailpoints>

/** What a transaction of actions is for, by what it writes. */
const steps: ReadonlyArray<readonly [step: string, statement: RegExp]> = [
  ["claim", /^\s*with candidates[^]*update blockwatcher_action_deliveries/],
  ["record", /^\s*insert into blockwatcher_provider_calls/],
  ["finish", /^\s*insert into blockwatcher_handled_deliveries/],
  ["park", /update blockwatcher_action_deliveries[^]*state = 'parked'/],
]

/** Every step of an action that its runner's database sees. */
export const transactionSteps: ReadonlyArray<string> = steps.map(([step]) => `action-${step}`)

/** Lets a MikroORM come to the failpoints `action-<step>:before` and `:after` the commit of what a step writes. */
const inTransactions = (orm: MikroORM, failpoints: Failpoints): MikroORM => {
  const taken = new WeakMap<object, Set<string>>()
  const pass = (on: object, side: string) =>
    Effect.runPromise(
      Effect.forEach(taken.get(on) ?? [], (step) => failpoints.pass(`action-${step}:${side}`), { discard: true }),
    )
  return watch(orm, {
    statement: (sql, on) => {
      if (on === null) return
      const own = taken.get(on) ?? new Set()
      for (const [step, statement] of steps) if (statement.test(sql)) own.add(step)
      taken.set(on, own)
    },
    ends: (on) => pass(on, "before"),
    committed: (on) => pass(on, "after"),
  })
}

/** Decorates a storage, so that the transactions of actions come to failpoints too. */
export const actionStorage = <E>(layer: Layer.Layer<Storage, E>, failpoints: Failpoints): Layer.Layer<Storage, E> =>
  Layer.effect(
    Storage,
    Effect.map(Storage, (storage) => ({
      ...storage,
      orm: (options) => Effect.map(storage.orm(options), (orm) => inTransactions(orm, failpoints)),
    })),
  ).pipe(Layer.provide(failpoints.storage(layer)))

/** The steps of a call: before it is sent, when the bank did it and has not answered, and when it has answered. */
export const callSteps: ReadonlyArray<string> = ["book", "letter"].flatMap((call) => [
  `${call}:before`,
  `${call}:during`,
  `${call}:after`,
])

/** Ms after which the bank has done what it was asked for, and has not answered: it takes longer to. */
const DONE_MS = 15

/** Decorates the bank, so that calls come to failpoints. */
export const bankThrough = (layer: Layer.Layer<Bank>, failpoints: Failpoints): Layer.Layer<Bank> =>
  Layer.effect(
    Bank,
    Effect.map(Bank, (bank) => {
      const around = <A, E>(call: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> => {
        const during = Effect.andThen(Effect.sleep(DONE_MS), failpoints.pass(`${call}:during`))
        return failpoints.pass(`${call}:before`).pipe(
          Effect.andThen(Effect.raceFirst(effect, Effect.andThen(during, Effect.never))),
          Effect.tap(() => failpoints.pass(`${call}:after`)),
        )
      }
      return {
        book: (...args) => around("book", bank.book(...args)),
        sendLetter: (...args) => around("letter", bank.sendLetter(...args)),
      }
    }),
  ).pipe(Layer.provide(layer))
