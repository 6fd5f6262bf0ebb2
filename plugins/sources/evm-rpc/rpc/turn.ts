import { Context, Effect } from "effect"

/**
 * When an answer may be parsed. Ranges that are read ahead keep their answers as bytes until it is their turn: parsed
 * logs of several ranges at once would be copied by the garbage collector again and again.
 */
export const Turn = Context.Reference<Effect.Effect<void>>("blockwatcher/evm-rpc/Turn", {
  defaultValue: () => Effect.void,
})
