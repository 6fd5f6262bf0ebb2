import { MalformedAnswer, readHash, readObject } from "../evm-rpc/wire.ts"
import { type PendingTransaction, readPending } from "./pending.ts"

/** What a node says of a transaction: its hash, or all of it. */
export type Told = string | PendingTransaction

export const hashOf = (told: Told): string => (typeof told === "string" ? told : told.hash)

/** Throws `MalformedAnswer`, like those below. */
export const readTold = (one: unknown): Told =>
  typeof one === "string" ? readHash(one, "the hash of a transaction") : readPending(one)

/** What a filter answers. */
export const readChanges = (answer: unknown): ReadonlyArray<Told> => {
  if (!Array.isArray(answer))
    throw new MalformedAnswer("the changes of a filter should be a list, but are something else")
  return answer.map(readTold)
}

/** The transactions of a pool that can be mined next, by sender and nonce. */
export const readPool = (answer: unknown): ReadonlyArray<PendingTransaction> =>
  Object.values(readObject(readObject(answer, "the pool")["pending"] ?? {}, "the pending part of the pool")).flatMap(
    (ofSender) => Object.values(readObject(ofSender, "the transactions of a sender")).map(readPending),
  )
