import { Effect } from "effect"
import type { HeadHints, ToldHead } from "./head-hints.ts"
import type { SubscriptionListener } from "./rpc/subscription.ts"
import { readHash, readObject, readQuantity } from "./wire.ts"

/** A header is a few kilobytes; some chains put much into `extraData`. */
const MAX_BYTES = 256 * 1024

/** Blocks that may wait: each ends a wait, so few ever do. */
const MAX_WAITING = 256

const readHead = (result: unknown): ToldHead => {
  const head = readObject(result, "a block")
  return {
    number: readQuantity(head["number"], "the number of a block"),
    hash: readHash(head["hash"], "the hash of a block"),
  }
}

/** Subscribes to new blocks, which are announced to `hints`. */
export const headListener = (hints: HeadHints): SubscriptionListener<ToldHead> => ({
  what: "new blocks",
  otherwise: "new blocks are found by polling until it is back",
  subscriptions: [["newHeads"]],
  maxBytes: MAX_BYTES,
  maxWaiting: MAX_WAITING,
  read: readHead,
  hear: (head) => Effect.sync(() => hints.announce(head)),
  opened: () => hints.opened(),
  closed: () => hints.closed(),
  proof: hints.proof,
  silence: hints.silence,
})
