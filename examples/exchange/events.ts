import { EventType } from "blockwatcher"
import { Schema } from "effect"

const Movement = Schema.Struct({
  /** The ledger entry. */
  entry: Schema.String,
  customer: Schema.String,
  /** Negative when a deposit is taken back. In JSON it is text, with every digit. */
  amount: Schema.BigInt,
})

/** An account was credited. */
export const DepositCredited = EventType.make({ name: "deposit-credited", version: 1, schema: Movement })

/** A credit was taken back, because the chain took the deposit back. */
export const DepositReversed = EventType.make({ name: "deposit-reversed", version: 1, schema: Movement })
