import { Action, Match } from "blockwatcher"
import { Effect, Schema } from "effect"
import { CUSTOMERS } from "../customers.ts"
import { DepositCredited, DepositReversed } from "../events.ts"
import { Account, Deposit, Entry } from "../tables/entities.ts"

/** The part of a match's event that is of interest here. */
const Transfer = Schema.Struct({ args: Schema.Struct({ to: Schema.String, value: Schema.BigInt }) })

/**
 * Makes an account agree with the chain. Matches and retractions come in any order, and perhaps again: what counts is
 * whether the deposit stands now, and whether the account has it.
 */
export const credit = Action.make({
  name: "credit",
  on: Match.of("deposits", Transfer),
  run: ({ event, em, emit, matches }) =>
    Effect.gen(function* () {
      const { matchId, payload } = event
      const customer = CUSTOMERS.get(payload.args.to.toLowerCase())
      const state = yield* matches.state(matchId)
      // A match that is not kept any more was settled long ago.
      if (customer === undefined || state === null) return
      const found = yield* Effect.tryPromise(() => em.findOne(Deposit, matchId))
      if ((found?.credited ?? false) === state.canonical) return

      const deposit =
        found ??
        em.create(Deposit, { matchId, customer, amount: payload.args.value, credited: false, life: state.life })
      const account =
        (yield* Effect.tryPromise(() => em.findOne(Account, customer))) ?? em.create(Account, { customer, balance: 0n })
      const amount = state.canonical ? deposit.amount : -deposit.amount
      deposit.credited = state.canonical
      if (state.canonical) deposit.life = state.life
      account.balance += amount
      const entry = `${matchId}-${deposit.life}${state.canonical ? "" : "-r"}`
      em.create(Entry, { id: entry, customer, amount })
      yield* emit(state.canonical ? DepositCredited : DepositReversed, { entry, customer, amount })
    }),
})
