import { Action } from "blockwatcher"
import { Effect } from "effect"
import { sendLetter } from "../bank/operations.ts"
import { DepositCredited } from "../events.ts"
import { Entry } from "../tables/entities.ts"

/**
 * Lets the bank send the customer a letter. It takes no key, and nobody wants two letters: it is asked at most once, and
 * where its answer is lost, a person looks.
 */
export const confirm = Action.make({
  name: "confirm",
  on: DepositCredited,
  calls: { sendLetter },
  run: ({ event, em, calls }) =>
    Effect.gen(function* () {
      const { entry, customer, amount } = event.payload
      const { number } = yield* calls.sendLetter({ reference: entry, customer, amount })
      const confirmed = yield* Effect.tryPromise(() => em.findOneOrFail(Entry, entry))
      confirmed.letter = number
    }),
})
