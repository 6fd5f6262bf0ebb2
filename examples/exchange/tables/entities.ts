import { defineEntity, p } from "@mikro-orm/core"
import { Amount } from "./amount.ts"

/*
 * The exchange's own tables. What an action changes has a version, by which it sees that another run was faster; then it
 * runs again on what is there now.
 */

/** A customer's account. */
export const Account = defineEntity({
  name: "Account",
  tableName: "exchange_accounts",
  properties: {
    customer: p.text().primary(),
    balance: p.type(Amount),
    version: p.integer().version(),
  },
})

/** What became of a deposit: filed under the id of its match, which stays the same however often the chain takes it back. */
export const Deposit = defineEntity({
  name: "Deposit",
  tableName: "exchange_deposits",
  properties: {
    matchId: p.text().primary(),
    customer: p.text(),
    amount: p.type(Amount),
    /** Whether the account has it at present. */
    credited: p.boolean(),
    /** The life of the match that it was last credited in. */
    life: p.integer(),
    version: p.integer().version(),
  },
})

/** A movement of an account. None is ever changed but for what the bank answered; a reversal is one of its own. */
export const Entry = defineEntity({
  name: "Entry",
  tableName: "exchange_entries",
  properties: {
    id: p.text().primary(),
    customer: p.text(),
    /** Negative when a deposit is taken back. */
    amount: p.type(Amount),
    /** The bank's number for it, once it is booked there. */
    receipt: p.integer().nullable(),
    /** The number of the letter that tells the customer of it. */
    letter: p.integer().nullable(),
    version: p.integer().version(),
  },
})
