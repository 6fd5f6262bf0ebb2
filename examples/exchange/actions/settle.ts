import { Action } from "blockwatcher"
import { Effect } from "effect"
import { book } from "../bank/operations.ts"
import { DepositCredited, DepositReversed } from "../events.ts"
import { Entry } from "../tables/entities.ts"

/**
 * Books each movement at the bank. The call carries a key, so that the bank ignores a repeat. It depends on the event
 * alone: a run that is repeated must make the calls that the one before it made.
 */
export const settle = Action.make({
  name: "settle",
  on: [DepositCredited, DepositReversed],
  calls: { book },
  run: ({ event, em, calls }) =>
    Effect.gen(function* () {
      const { entry, customer, amount } = event.payload
      const { receipt } = yield* calls.book({ reference: entry, customer, amount })
      const booked = yield* Effect.tryPromise(() => em.findOneOrFail(Entry, entry))
      booked.receipt = receipt
    }),
})
